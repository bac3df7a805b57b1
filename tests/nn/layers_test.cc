// Dense layers, blocks and embeddings, from small files: whole and shared.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "comm/thread.h"
#include "nn/block_list.h"
#include "nn/embedder.h"
#include "nn/encoder_layer.h"
#include "nn/linear.h"
#include "nn/predict.h"
#include "nn/token_table.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"
#include "weights/paging/cpu_device.h"

namespace braid::layers_test {

using testing::ElementsAre;
using testing::HasSubstr;

class Layers : public testing::Test {
 protected:
  Weights open(const std::map<std::string, Tensor>& tensors, LoadOptions options = {},
               const ShardingTable& table = {}) {
    write_file(folder_ / "m.safetensors", write_safetensors(tensors));
    return {Checkpoint::open(folder_.path(), "m"), {}, std::move(options), table};
  }
  TemporaryFolder folder_;
};

double largest_difference(const Tensor& a, const Tensor& b) {
  return (a - b).abs().max().item<double>();
}

// Two ranks with half each compute the same as the formula on the whole; the bias is added once.
TEST_F(Layers, SharedAmongRanksMakeWhatOneMakes) {
  const std::map<std::string, Tensor> stored = {
      {"up.weight", at::randn({12, 6})},   {"up.bias", at::randn({12})},
      {"down.weight", at::randn({6, 12})}, {"down.bias", at::randn({6})},
      {"mod.weight", at::randn({8, 6})},   {"mod.bias", at::randn({8})}};
  const auto x = at::randn({2, 5, 6});
  const auto dense = [&](const Tensor& in, const std::string& name) {
    return at::matmul(in, stored.at(name + ".weight").t()) + stored.at(name + ".bias");
  };
  const auto up = dense(x, "up"), down = dense(up, "down"), mod = dense(x, "mod");
  const ShardingTable table = {
      {"up", column_parallel()}, {"down", row_parallel()}, {"mod", column_parallel_gathered()}};
  (void)open(stored);
  run_ranks({.size = 2}, [&](const Group& ranks) {
    const Weights w(Checkpoint::open(folder_.path(), "m"), {}, {.tensor_parallel = ranks}, table);
    const Linear first(w / "up", {.in = 6, .out = 12}), second(w / "down", {.in = 12, .out = 6});
    const auto mine = first(x);
    EXPECT_LT(largest_difference(mine, take_share(up, -1, ranks)), 1e-5);
    EXPECT_LT(largest_difference(second(mine), down), 1e-5);
    EXPECT_LT(largest_difference(Linear(w / "mod", {.in = 6, .out = 8})(x), mod), 1e-5);
    w.finish();
  });
}

// Attention is trivial: each token attends to itself.
TEST_F(Layers, OfEncodersAreWhatTheirActivationSays) {
  constexpr std::int64_t kHidden = 8, kWide = 12;
  std::map<std::string, Tensor> stored;
  const auto draw = [&](const std::string& name, std::vector<std::int64_t> shape) {
    stored[name + ".weight"] = at::randn(shape);
    stored[name + ".bias"] = at::randn({shape[0]});
  };
  for (const auto* const norm : {"layer_norm1", "layer_norm2"}) draw(norm, {kHidden});
  draw("self_attn.qkv", {3 * kHidden, kHidden});
  draw("self_attn.out_proj", {kHidden, kHidden});
  draw("mlp.fc1", {kWide, kHidden});
  draw("mlp.fc2", {kHidden, kWide});
  const auto dense = [&](const Tensor& x, const std::string& name) {
    return at::linear(x, stored.at(name + ".weight"), stored.at(name + ".bias"));
  };
  const auto norm = [&](const Tensor& x, const std::string& name) {
    return at::layer_norm(x, {kHidden}, stored.at(name + ".weight"), stored.at(name + ".bias"));
  };
  const auto x = at::randn({2, 5, kHidden});
  const auto values = dense(norm(x, "layer_norm1"), "self_attn.qkv").narrow(-1, 2 * kHidden, 8);
  const auto h = x + dense(values, "self_attn.out_proj");
  const auto wide = dense(norm(h, "layer_norm2"), "mlp.fc1");
  const std::map<Activation, Tensor> activated = {
      {Activation::kQuickGelu, wide * at::sigmoid(1.702 * wide)},
      {Activation::kGelu, at::gelu(wide)},
      {Activation::kGeluTanh, at::gelu(wide, "tanh")}};
  const auto to_itself = [](const Tensor&, const Tensor&, const Tensor& v) { return v; };
  for (const auto& [activation, y] : activated) {
    const EncoderLayer layer(open(stored), {.hidden = kHidden,
                                            .mlp_hidden = kWide,
                                            .num_heads = 2,
                                            .eps = 1e-5,
                                            .activation = activation});
    EXPECT_LT(largest_difference(layer(x, to_itself), h + dense(y, "mlp.fc2")), 1e-5);
  }
}

// Only layers that neither communicate nor fetch their weights, with scratch memory of their own.
TEST_F(Layers, MayRunBesideOthersOnASecondStream) {
  const std::map<std::string, Tensor> stored = {{"a.weight", at::randn({4, 4})},
                                                {"b.weight", at::randn({4, 4})}};
  const auto may = [](const Weights& w, const Weights& beside) {
    const LinearShape shape{.in = 4, .out = 4, .bias = Bias::kNo};
    const Linear a(w / "a", shape), b(beside / "b", shape);
    EXPECT_EQ(a.may_run_concurrently(b), b.may_run_concurrently(a));
    return a.may_run_concurrently(b);
  };
  const c10::Stream second(c10::Stream::DEFAULT, at::kCPU);
  const LoadOptions with_second{.second_stream = second};
  {
    const auto w = open(stored);
    EXPECT_FALSE(may(w, w.on_second_stream())) << "there is no second stream";
  }
  {
    const auto w = open(stored, with_second);
    EXPECT_FALSE(may(w, w)) << "both take the same scratch memory";
  }
  {
    const auto w = open(stored, with_second);
    EXPECT_TRUE(may(w, w.on_second_stream()));
  }
  for (const auto level : {PageLevel::kBlock, PageLevel::kLeaf}) {
    const auto pages =
        std::make_shared<Pages>(std::make_shared<CpuPageDevice>(), at::kCPU, PageOptions());
    auto options = with_second;
    options.paging = {.pages = pages, .level = level};
    const auto block = open(stored, options).paged(PageLevel::kBlock, "block");
    EXPECT_EQ(may(block, block.on_second_stream()), level == PageLevel::kBlock);
    pages->finish();
  }
  for (const auto& sharding : {column_parallel(), column_parallel_gathered(), row_parallel()})
    run_ranks({.size = 2}, [&](const Group& ranks) {
      const Weights w(Checkpoint::open(folder_.path(), "m"), {},
                      {.tensor_parallel = ranks, .second_stream = second}, {{"b", sharding}});
      EXPECT_EQ(may(w, w.on_second_stream()), sharding.outputs == Outputs::Are::kShared);
    });
}

// Text and image share one reduction if both are sums.
TEST_F(Layers, ReduceTwoSumsAtOnce) {
  const std::map<std::string, Tensor> stored = {
      {"a.weight", at::randn({3, 8})}, {"a.bias", at::randn({3})}, {"b.weight", at::randn({3, 8})}};
  const auto x = at::randn({2, 4, 8}), y = at::randn({2, 1, 8});
  (void)open(stored);
  run_ranks({.size = 2}, [&](const Group& ranks) {
    const Weights w(Checkpoint::open(folder_.path(), "m"), {}, {.tensor_parallel = ranks},
                    {{"*", row_parallel()}});
    const Linear a(w / "a", {.in = 8, .out = 3}),
        b(w / "b", {.in = 8, .out = 3, .bias = Bias::kNo});
    const auto before = ranks.traffic().all_reduces;
    const auto [ax, by] = apply_both(a, take_share(x, -1, ranks), b, take_share(y, -1, ranks));
    EXPECT_EQ(ranks.traffic().all_reduces, before + 1);
    const auto want_a = at::matmul(x, stored.at("a.weight").t()) + stored.at("a.bias");
    EXPECT_LT(largest_difference(ax, want_a), 1e-5);
    EXPECT_LT(largest_difference(by, at::matmul(y, stored.at("b.weight").t())), 1e-5);
  });
}

// Bfloat16 counts by twos from 256 on: 256 + 1 + 1 is 258 if it is rounded once, and then 2 + 258
// is 260.
TEST_F(Layers, RoundTheirSumOnceBehindBiasAndGate) {
  const auto ones = [](at::IntArrayRef shape) { return at::ones(shape, at::kBFloat16); };
  const std::map<std::string, Tensor> stored = {
      {"a.weight", at::tensor({256., 1.}).view({1, 2}).to(at::kBFloat16)}, {"a.bias", ones({1})}};
  (void)open(stored);
  run_ranks({.size = 2}, [&](const Group& ranks) {
    const Weights w(Checkpoint::open(folder_.path(), "m"), {},
                    {.dtype = at::kBFloat16, .tensor_parallel = ranks}, {{"*", row_parallel()}});
    const Linear a(w / "a", {.in = 2, .out = 1});
    const auto x = ones({1, 3, 1}), residual = 2 * ones({1, 3, 1}), gate = ones({1, 1, 1});
    const auto before = ranks.traffic().all_reduces;
    EXPECT_TRUE(a(x).eq(258).all().item<bool>());
    EXPECT_TRUE(a.gated_residual(residual, gate, x).eq(260).all().item<bool>());
    const GatedLayer gated{a, x, residual, gate};
    for (const auto& sum :
         {gated_residuals(gated, gated).first, gated_residuals(gated, gated).second})
      EXPECT_TRUE(sum.eq(260).all().item<bool>());
    EXPECT_EQ(ranks.traffic().all_reduces, before + 4);
  });
}

// One device and two should both give what the formula says.
TEST_F(Layers, AddTheirOutputsToResiduals) {
  const std::map<std::string, Tensor> stored = {
      {"a.weight", at::randn({6, 8})}, {"a.bias", at::randn({6})}, {"b.weight", at::randn({6, 8})}};
  (void)open(stored);
  struct Side {
    Tensor x, residual, product;
    Modulation attention, mlp;
  };
  const auto draw = [&](std::int64_t tokens, const Tensor& bias, const char* weight) {
    const auto one = [] { return at::randn({2, 1, 6}); };
    const auto x = at::randn({2, tokens, 8});
    return Side{.x = x,
                .residual = at::randn({2, tokens, 6}),
                .product = at::matmul(x, stored.at(weight).t()) + bias,
                .attention = {one(), one(), one()},
                .mlp = {one(), one(), one()}};
  };
  const auto first = draw(4, stored.at("a.bias"), "a.weight"),
             second = draw(3, at::zeros({6}), "b.weight");
  const auto sum = [](const Side& s) { return s.residual + s.attention.gate * s.product; };
  const auto norm = [&](const Side& s) {
    return at::layer_norm(sum(s), {6}, {}, {}, 1e-6) * (1 + s.mlp.scale) + s.mlp.shift;
  };
  for (const int size : {1, 2})
    run_ranks({.size = size}, [&](const Group& ranks) {
      const Weights w(Checkpoint::open(folder_.path(), "m"), {}, {.tensor_parallel = ranks},
                      {{"*", row_parallel()}});
      const Linear a(w / "a", {.in = 8, .out = 6}),
          b(w / "b", {.in = 8, .out = 6, .bias = Bias::kNo});
      const auto gated = [&](const Linear& layer, const Side& s) {
        return GatedLayer{layer, take_share(s.x, -1, ranks), s.residual, s.attention.gate};
      };
      const auto one =
          a.gated_residual(first.residual, first.attention.gate, take_share(first.x, -1, ranks));
      EXPECT_LT(largest_difference(one, sum(first)), 1e-5);
      const auto before = ranks.traffic().all_reduces;
      const auto sums = gated_residuals(gated(a, first), gated(b, second));
      const auto norms =
          gated_residual_norms({gated(a, first), first.mlp}, {gated(b, second), second.mlp});
      EXPECT_EQ(ranks.traffic().all_reduces, before + (size > 1 ? 2 : 0));
      EXPECT_LT(largest_difference(sums.first, sum(first)), 1e-5);
      EXPECT_LT(largest_difference(sums.second, sum(second)), 1e-5);
      EXPECT_TRUE(at::equal(norms.first.sum_BLC, sums.first));
      EXPECT_TRUE(at::equal(norms.second.sum_BLC, sums.second));
      EXPECT_LT(largest_difference(norms.first.normed.x, norm(first)), 1e-4);
      EXPECT_LT(largest_difference(norms.second.normed.x, norm(second)), 1e-4);
    });
}

TEST_F(Layers, AddTwoSumsBeforeOneReduction) {
  const std::map<std::string, Tensor> stored = {
      {"a.weight", at::randn({3, 8})}, {"a.bias", at::randn({3})}, {"b.weight", at::randn({3, 4})}};
  const auto x = at::randn({2, 5, 8}), y = at::randn({2, 5, 4});
  (void)open(stored);
  const auto want = at::matmul(x, stored.at("a.weight").t()) + stored.at("a.bias") +
                    at::matmul(y, stored.at("b.weight").t());
  for (const int size : {1, 2})
    run_ranks({.size = size}, [&](const Group& ranks) {
      const Weights w(Checkpoint::open(folder_.path(), "m"), {}, {.tensor_parallel = ranks},
                      {{"*", row_parallel()}});
      const Linear a(w / "a", {.in = 8, .out = 3}),
          b(w / "b", {.in = 4, .out = 3, .bias = Bias::kNo});
      const auto before = ranks.traffic().all_reduces;
      const auto sum = apply_summed(a, take_share(x, -1, ranks), b, take_share(y, -1, ranks));
      EXPECT_EQ(ranks.traffic().all_reduces, before + (size > 1));
      EXPECT_LT(largest_difference(sum, want), 1e-5);
    });
}

struct Block {
  explicit Block(const Weights& w) : weight(w.tensor("weight", {1})) {}
  Tensor weight;
};

std::map<std::string, Tensor> five_blocks() {
  std::map<std::string, Tensor> stored;
  for (int i = 0; i < 5; ++i)
    stored["blocks." + std::to_string(i) + ".weight"] = at::full({1}, double(i));
  return stored;
}

TEST_F(Layers, OfARunOfBlocksAreVisitedInOrder) {
  const auto w = open(five_blocks());
  const BlockList<Block> list(w / "blocks", run_of(BlockRange{.begin = 1, .count = 3}, 5));
  std::vector<std::pair<std::int64_t, int>> seen;
  list.for_each(
      [&](std::int64_t i, const Block& b) { seen.emplace_back(i, b.weight.item<int>()); });
  EXPECT_THAT(seen, ElementsAre(std::pair(1, 1), std::pair(2, 2), std::pair(3, 3)));
  w.finish();  // the others count as used
}

TEST_F(Layers, OfBlocksThatAreElsewhereAreChecked) {
  auto stored = five_blocks();
  stored["blocks.4.weight"] = at::zeros({2});
  const auto w = open(stored);
  EXPECT_THROW(BlockList<Block>(w / "blocks", run_of(BlockRange{.begin = 0, .count = 2}, 5)),
               InputError);
}

TEST(BlockRun, HasEndsWhereItReachesThem) {
  const auto ends = [](const BlockRange& range) {
    const auto run = run_of(range, 7);
    return std::pair(run.has_first(), run.has_last());
  };
  EXPECT_EQ(ends({.begin = 0, .count = 7}), std::pair(true, true));
  EXPECT_EQ(ends({.begin = 0, .count = 3}), std::pair(true, false));
  EXPECT_EQ(ends({.begin = 3, .count = 4}), std::pair(false, true));
  EXPECT_EQ(ends({.begin = 0, .count = 0}), std::pair(true, false));
  EXPECT_EQ(ends({.begin = 7, .count = 0}), std::pair(false, true));
  EXPECT_EQ(ends({.begin = 0, .count = 7, .ends = Ends::kLeftOut}), std::pair(false, false));
  EXPECT_EQ(run_of({}, 7).count, 7);
  // 4 blocks of a kind starting at block 3: those before the run are skipped.
  const auto kind = run_of(BlockRange{.begin = 2, .count = 3}, 7).of_kind(3, 4);
  EXPECT_EQ(kind.begin, -1);
  EXPECT_EQ(kind.all, 4);
}

// cos(t f), then sin(t f), f = 10000^(-2k/width), in double precision.
TEST(SinusoidalEmbedding, IsTheFormulas) {
  const auto made = sinusoidal_embedding(at::tensor({0.f, 1.f, 999.5f}), 8);
  ASSERT_EQ(made.sizes(), at::IntArrayRef({3, 8}));
  for (int row = 0; row < 3; ++row)
    for (int k = 0; k < 4; ++k) {
      const double angle = (row == 2 ? 999.5 : row) * std::pow(10000.0, -k / 4.0);
      EXPECT_NEAR(made[row][k].item<double>(), std::cos(angle), 1e-4);
      EXPECT_NEAR(made[row][k + 4].item<double>(), std::sin(angle), 1e-4);
    }
}

TEST_F(Layers, LookUpRowsInTheDtypeOfTheLoad) {
  const auto stored = at::randn({10, 3});
  const auto w = open({{"t.weight", stored}}, {.dtype = at::kBFloat16});
  const auto rows = TokenTable(w / "t", 10, 3)(at::tensor({7, 0, 7}, at::kLong).unsqueeze(0));
  EXPECT_EQ(rows.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(rows[0], stored.index_select(0, at::tensor({7, 0, 7})).to(at::kBFloat16)));
}

// Every tensor of an input, exactly once: layouts and graphs see no others.
TEST(DenoiserInput, EnumeratesEveryTensorThatIsThere) {
  DenoiserInput in{.noise = {at::ones({2, 5, 3}), at::ones({5, 2})},
                   .text = {at::ones({2, 4, 6}), at::ones({4, 2}), at::ones({4})},
                   .references = {{at::ones({2, 7, 3}), at::ones({7, 2})}},
                   .timestep_B = at::ones({2}),
                   .modulations_BM = at::ones({2, 9})};
  std::vector<std::string> seen;
  visit_tensors(in, [&](const Tensor& x, const DimRoles& dims) {
    seen.push_back(dims.name);
    EXPECT_EQ(dims.batch == DimRoles::kNone ? 2 : x.size(dims.batch), 2) << dims.name;
    EXPECT_GE(dims.tokens == DimRoles::kNone ? 4 : x.size(dims.tokens), 4) << dims.name;
  });
  EXPECT_THAT(seen, ElementsAre("image", "image", "text", "text", "text", "reference", "reference",
                                "timestep", "modulations"));
}

}  // namespace braid::layers_test
