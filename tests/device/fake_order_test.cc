// Which work waits for which, told by the streams of fake_gpu.cc.
#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "base/error.h"
#include "comm/device/side_stream.h"
#include "fake_order.h"
#include "nn/block_list.h"
#include "nn/joint_block.h"
#include "on_gpu.h"
#include "pipeline/loaded/text_stream.h"
#include "weights/paging/accelerator_device.h"

namespace braid::fake_order_test {

using fake_gpu::OrderOfWork;
using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty, testing::Not;

const at::Device kGpu(at::kCUDA, 0);

c10::Stream new_stream() { return c10::impl::VirtualGuardImpl(at::kCUDA).getNewStream(kGpu); }
Tensor ones() { return at::ones({4}, kGpu); }

class FakeOrder : public testing::Test {
 protected:
  std::string word(const char* what, const c10::Stream& stream) const {
    return text_of(what, " ", stream.id());
  }

  const c10::Stream first_ = c10::impl::VirtualGuardImpl(at::kCUDA).getDefaultStream(kGpu);
  const c10::Stream second_ = new_stream();
};

TEST_F(FakeOrder, BranchesForkBeforeTheSecondAndJoinBehindBoth) {
  const auto x = ones();
  const OrderOfWork order;
  const auto [image, text] = TwoStreams(second_)([&] { return x.neg(); }, [&] { return x.exp(); });
  const auto both = image + text;
  EXPECT_THAT(order.log(),
              ElementsAre(word("record", first_), word("wait", second_), word("work", second_),
                          word("work", first_), word("record", second_), word("wait", first_),
                          word("work", first_)));
  EXPECT_THAT(order.complaints(), IsEmpty());
}

TEST_F(FakeOrder, BranchesOnOneStreamNeedNoEvents) {
  const auto x = ones();
  const OrderOfWork order;
  (void)TwoStreams()([&] { return x.neg(); }, [&] { return x.exp(); });
  EXPECT_THAT(order.log(), ElementsAre(word("work", first_), word("work", first_)));
}

// Its memory is free then, for the current stream's next tensor.
TEST_F(FakeOrder, ATransferThatFailsStillEndsBeforeItsMemoryIsUsed) {
  SideStream side(kGpu);
  const OrderOfWork order;
  const auto transfer = [&] {
    const auto x = ones();
    (void)side.start({x}, [&](const c10::Stream& stream) {
      const c10::StreamGuard on(stream);
      x.fill_(2);
      throw Error("as asked");
    });
  };
  EXPECT_THROW(transfer(), Error);
  for (int i = 0; i < 3; ++i) (void)ones();
  EXPECT_THAT(order.complaints(), IsEmpty());
}

TEST_F(FakeOrder, BranchesJoinWhateverIsThrown) {
  const auto x = ones();
  const auto fail = [&]() -> Tensor {
    (void)x.neg();
    throw Error("as asked");
  };
  const auto well = [&] { return x.exp(); };
  for (const bool is_second : {false, true}) {
    const OrderOfWork order;
    EXPECT_THROW(
        (void)(is_second ? TwoStreams(second_)(well, fail) : TwoStreams(second_)(fail, well)),
        Error);
    const auto log = order.log();
    ASSERT_GE(log.size(), 5u);
    EXPECT_EQ(log[log.size() - 2], word("record", second_));
    EXPECT_EQ(log.back(), word("wait", first_));
    EXPECT_EQ(c10::impl::VirtualGuardImpl(at::kCUDA).getStream(kGpu), first_);
  }
}

// The checker itself: each mistake that TwoStreams could make.
TEST_F(FakeOrder, FindsAMissingFork) {
  const OrderOfWork order;
  const auto x = ones();
  const c10::StreamGuard on(second_);
  (void)x.neg();
  ASSERT_THAT(order.complaints(), Not(IsEmpty()));
  EXPECT_THAT(order.complaints().front(), HasSubstr("reads what it does not wait for"));
}

TEST_F(FakeOrder, FindsAMissingJoin) {
  const OrderOfWork order;
  const auto x = ones();
  Tensor y;
  const auto made = [&] {
    const c10::StreamGuard on(second_);
    y = x.neg();
  };
  {
    Fork fork(second_);
    made();
    fork.join();
    EXPECT_THAT(order.complaints(), IsEmpty());
    made();
  }
  EXPECT_THAT(order.complaints(), IsEmpty());
  Fork fork(second_);
  made();
  (void)y.exp();
  EXPECT_THAT(order.complaints(), Not(IsEmpty()));
}

TEST_F(FakeOrder, FindsMemoryFreedBeforeTheJoin) {
  const OrderOfWork order;
  auto x = ones();
  Fork fork(second_);
  {
    const c10::StreamGuard on(second_);
    (void)x.neg();
  }
  x.reset();
  const auto other = ones();
  ASSERT_THAT(order.complaints(), Not(IsEmpty()));
  EXPECT_THAT(order.complaints().front(), HasSubstr("is given memory that may still be used"));
}

// Why TwoStreams queues the second part first.
TEST_F(FakeOrder, FindsMemoryOfTheSecondStreamThatTheFirstFreesBehindTheFork) {
  const OrderOfWork order;
  auto text = TwoStreams(second_)([] { return ones(); }, [] { return ones(); }).second;
  Fork fork(second_);
  (void)text.neg();
  text.reset();
  const c10::StreamGuard on(second_);
  (void)ones();
  EXPECT_THAT(order.complaints(), Not(IsEmpty()));
}

// Double blocks one after another, as a model has them, with weights in any form and place.
class Blocks {
 public:
  static constexpr std::int64_t kWidth = 16, kHeadWidth = 8, kCount = 2;

  Blocks(Quantize form, std::optional<PageLevel> level, std::optional<c10::Stream> second) {
    LoadOptions load{.device = kGpu, .quantize = form, .second_stream = second};
    if (level) {
      pages_ = std::make_shared<Pages>(std::make_shared<AcceleratorPageDevice>(kGpu, Pin::kNever),
                                       kGpu, PageOptions());
      load.paging = {.pages = pages_, .level = *level};
    }
    blocks_.emplace(Weights::synthetic(load) / "blocks", kCount);
    if (pages_) pages_->finish();
  }

  JointTokens operator()(JointTokens x, const Tensor& modulations, const Rope& rope) const {
    const Modulation m{modulations, modulations, modulations};
    blocks_->for_each([&](std::int64_t, const Block& block) {
      x = block(x, {.image = {m, m}, .text = {m, m}}, rope, ops::attention);
    });
    return x;
  }

 private:
  struct Block : JointBlock {
    explicit Block(const Weights& w)
        : JointBlock({.image = side(w / "image"), .text = side((w / "text").on_second_stream())},
                     {.mlp = Mlp::kGelu, .first = First::kText}, w.second_stream()) {}
    static JointSide side(const Weights& w) {
      return {.qkv = {w / "qkv", {.in = kWidth, .out = 3 * kWidth}},
              .proj = {w / "proj", {.in = kWidth, .out = kWidth}},
              .mlp_in = {w / "in", {.in = kWidth, .out = 2 * kWidth}},
              .mlp_out = {w / "out", {.in = 2 * kWidth, .out = kWidth}},
              .q_norm = {w / "q", kHeadWidth, 1e-6},
              .k_norm = {w / "k", kHeadWidth, 1e-6}};
    }
  };

  std::shared_ptr<Pages> pages_;
  std::optional<BlockList<Block>> blocks_;
};

struct Way {
  const char* name;
  Quantize form = Quantize::kNone;
  std::optional<PageLevel> level = {};
};
const Way kWays[] = {{"numbers"},
                     {"int8", Quantize::kInt8},
                     {"int8-dynamic", Quantize::kInt8Dynamic},
                     {"blocks", Quantize::kInt8, PageLevel::kBlock},
                     {"layers", Quantize::kInt8, PageLevel::kLeaf}};

// Twice, as steps follow each other: memory of one is given to the next.
TEST_F(FakeOrder, OfDoubleBlocksIsKeptWithASecondStream) {
  const auto draw = [](at::IntArrayRef shape) { return at::rand(shape).to(kGpu); };
  const JointTokens x{.image_BIC = draw({1, 20, 16}), .text_BTC = draw({1, 18, 16})};
  const auto modulations = draw({1, 1, 16});
  const Rope rope{.cos = draw({38, 8}), .sin = draw({38, 8})};
  for (const auto& way : kWays) {
    const OrderOfWork order;
    const Blocks blocks(way.form, way.level, second_);
    const auto y = blocks(blocks(x, modulations, rope), modulations, rope);
    EXPECT_TRUE(at::cat({y.text_BTC, y.image_BIC}, 1).isfinite().all().item<bool>());
    EXPECT_THAT(order.complaints(), IsEmpty()) << way.name;
    const auto log = order.log();
    const bool is_taken = way.level != PageLevel::kLeaf;
    EXPECT_EQ(std::count(log.begin(), log.end(), word("wait", second_)),
              is_taken ? 2 * 2 * Blocks::kCount : 0)
        << way.name;
  }
}

TEST(WhyTextSharesStream, IsSaid) {
  const auto flux = named_family("flux1-dev"), zimage = named_family("z-image");
  ASSERT_TRUE(flux && zimage);
  const auto of = [](const auto& family, const PipelineOptions& options) {
    return Deployment{.options = options,
                      .files = nullptr,
                      .family = family,
                      .places = {},
                      .devices = {kGpu},
                      .dtype = at::kBFloat16,
                      .stated = {}};
  };
  PipelineOptions options;
  EXPECT_THAT(why_text_shares_stream(of(flux, options), kGpu), HasSubstr("asked for"));
  EXPECT_FALSE(text_stream(of(flux, options), kGpu));
  options.text_stream = TextStream::kOwn;
  EXPECT_EQ(why_text_shares_stream(of(flux, options), kGpu), "");
  EXPECT_TRUE(text_stream(of(flux, options), kGpu));
  EXPECT_THAT(why_text_shares_stream(of(zimage, options), kGpu), HasSubstr("no double blocks"));
  auto other = options;
  other.layout.tp = 2;
  EXPECT_THAT(why_text_shares_stream(of(flux, other), kGpu), HasSubstr("tensor parallel"));
  other = options;
  other.memory.offload.transformer = OffloadMode::kBlock;
  EXPECT_EQ(why_text_shares_stream(of(flux, other), kGpu), "");
  for (const auto mode : {OffloadMode::kLeaf, OffloadMode::kSequential}) {
    other.memory.offload.transformer = mode;
    EXPECT_THAT(why_text_shares_stream(of(flux, other), kGpu), HasSubstr("layer by layer"));
  }
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  EXPECT_FALSE(text_stream(of(flux, options), at::kCPU, warn));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("a CPU has no streams")));
}

}  // namespace braid::fake_order_test
