// Blocks of two sides against the formula, written out; and what modulates them.
#include "nn/joint_block.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "comm/thread.h"
#include "nn/modulations.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"

namespace braid::joint_block_test {

constexpr std::int64_t kWidth = 8, kHeadWidth = 4, kWide = 12, kText = 3, kImage = 5;
constexpr double kEps = 1e-6;

using Stored = std::map<std::string, Tensor>;

Stored stored_sides(JointBlock::Mlp mlp) {
  Stored stored;
  const auto draw = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    stored[name + ".weight"] = at::randn({out, in});
    stored[name + ".bias"] = at::randn({out});
  };
  for (const std::string side : {"image.", "text."}) {
    draw(side + "qkv", 3 * kWidth, kWidth);
    draw(side + "proj", kWidth, kWidth);
    draw(side + "in", mlp == JointBlock::Mlp::kSwiglu ? 2 * kWide : kWide, kWidth);
    draw(side + "out", kWidth, kWide);
    stored[side + "q.weight"] = at::rand({kHeadWidth}) + 0.5;
    stored[side + "k.weight"] = at::rand({kHeadWidth}) + 0.5;
  }
  return stored;
}

JointSide load_side(const Weights& w, JointBlock::Mlp mlp) {
  const auto wide = mlp == JointBlock::Mlp::kSwiglu ? 2 * kWide : kWide;
  return {.qkv = {w / "qkv", {.in = kWidth, .out = 3 * kWidth}},
          .proj = {w / "proj", {.in = kWidth, .out = kWidth}},
          .mlp_in = {w / "in", {.in = kWidth, .out = wide}},
          .mlp_out = {w / "out", {.in = kWide, .out = kWidth}},
          .q_norm = {w / "q", kHeadWidth, kEps},
          .k_norm = {w / "k", kHeadWidth, kEps}};
}

JointBlock load_block(const Weights& w, const JointBlock::Form& form) {
  return {{.image = load_side(w / "image", form.mlp), .text = load_side(w / "text", form.mlp)},
          form};
}

SideModulations drawn_side() {
  const auto one = [] {
    return Modulation{at::randn({2, 1, kWidth}), at::randn({2, 1, kWidth}),
                      at::randn({2, 1, kWidth})};
  };
  return {.attention = one(), .mlp = one()};
}

// What a block is given.
struct Given {
  JointTokens x{.image_BIC = at::randn({2, kImage, kWidth}),
                .text_BTC = at::randn({2, kText, kWidth})};
  JointModulations m{.image = drawn_side(), .text = drawn_side()};
  Rope rope;

  Given() {
    const auto angles = at::randn({kText + kImage, kHeadWidth / 2}).repeat_interleave(2, 1);
    rope = {.cos = angles.cos(), .sin = angles.sin()};
  }
};

// The block of the paper, on one device, in the words of ATen.
class Formula {
 public:
  Formula(const Stored& stored, const JointBlock::Form& form) : stored_(stored), form_(form) {}

  JointTokens operator()(const Given& given) const {
    const auto& [x, m, rope] = given;
    const bool is_text_first = form_.first == JointBlock::First::kText;
    const auto image = qkv("image", x.image_BIC, m.image.attention),
               text = qkv("text", x.text_BTC, m.text.attention);
    std::vector<Tensor> joined;
    for (std::size_t i = 0; i < 3; ++i)
      joined.push_back(is_text_first ? at::cat({text[i], image[i]}, 1)
                                     : at::cat({image[i], text[i]}, 1));
    const auto q = rotated(joined[0], rope), k = rotated(joined[1], rope);
    const auto scores = at::einsum("blhd,bmhd->bhlm", {q, k}) / std::sqrt(double(kHeadWidth));
    const auto y = at::einsum("bhlm,bmhd->blhd", {at::softmax(scores, -1), joined[2]}).flatten(2);
    const auto sides = is_text_first ? y.split_with_sizes({kText, kImage}, 1)
                                     : y.split_with_sizes({kImage, kText}, 1);
    return {.image_BIC = finished("image", x.image_BIC, sides[is_text_first ? 1 : 0], m.image),
            .text_BTC = finished("text", x.text_BTC, sides[is_text_first ? 0 : 1], m.text)};
  }

 private:
  Tensor dense(const std::string& name, const Tensor& x) const {
    return at::linear(x, stored_.at(name + ".weight"), stored_.at(name + ".bias"));
  }
  static Tensor modulated(const Tensor& x, const Modulation& m) {
    return at::layer_norm(x, {kWidth}, {}, {}, kEps) * (1 + m.scale) + m.shift;
  }
  static Tensor normed(const Tensor& x, const Tensor& scale) {
    return x * at::rsqrt(x.square().mean(-1, true) + kEps) * scale;
  }
  static Tensor rotated(const Tensor& x, const Rope& rope) {
    const auto pairs = x.unflatten(-1, {-1, 2});
    const auto turned = at::stack({-pairs.select(-1, 1), pairs.select(-1, 0)}, -1).flatten(-2);
    return x * rope.cos.unsqueeze(1) + turned * rope.sin.unsqueeze(1);
  }
  std::vector<Tensor> qkv(const std::string& side, const Tensor& x, const Modulation& m) const {
    auto parts = dense(side + ".qkv", modulated(x, m)).chunk(3, -1);
    for (auto& part : parts) part = part.unflatten(-1, {-1, kHeadWidth});
    parts[0] = normed(parts[0], stored_.at(side + ".q.weight"));
    parts[1] = normed(parts[1], stored_.at(side + ".k.weight"));
    return parts;
  }
  Tensor finished(const std::string& side, const Tensor& x, const Tensor& attended,
                  const SideModulations& m) const {
    const auto h = x + m.attention.gate * dense(side + ".proj", attended);
    const auto wide = dense(side + ".in", modulated(h, m.mlp));
    const auto halves = wide.chunk(2, -1);
    const auto active = form_.mlp == JointBlock::Mlp::kSwiglu ? at::silu(halves[0]) * halves[1]
                                                              : at::gelu(wide, "tanh");
    return h + m.mlp.gate * dense(side + ".out", active);
  }

  const Stored& stored_;
  JointBlock::Form form_;
};

double error_of(const JointTokens& got, const JointTokens& want) {
  const auto error = [](const Tensor& a, const Tensor& b) {
    return ((a - b).abs().max() / b.abs().max()).item<double>();
  };
  return std::max(error(got.image_BIC, want.image_BIC), error(got.text_BTC, want.text_BTC));
}

const JointBlock::Form kForms[] = {
    {.mlp = JointBlock::Mlp::kGelu, .first = JointBlock::First::kText, .norm_eps = kEps},
    {.mlp = JointBlock::Mlp::kGelu, .first = JointBlock::First::kImage, .norm_eps = kEps},
    {.mlp = JointBlock::Mlp::kSwiglu, .first = JointBlock::First::kText, .norm_eps = kEps}};

// One rank runs them, or two with a half of the heads and of the MLP each: four sums in two
// reductions.
TEST(JointBlocks, AreTheFormulaOnAnyNumberOfRanks) {
  for (const auto& form : kForms) {
    const TemporaryFolder folder;
    const auto stored = stored_sides(form.mlp);
    write_file(folder / "m.safetensors", write_safetensors(stored));
    const Given given;
    const auto want = Formula(stored, form)(given);
    const bool is_pair = form.mlp == JointBlock::Mlp::kSwiglu;
    const ShardingTable table = {
        {"*.qkv", column_parallel({kWidth, kWidth, kWidth}, kHeadWidth)},
        {"*.in", column_parallel(is_pair ? std::vector{kWide, kWide} : std::vector{kWide})},
        {"*.proj", row_parallel()},
        {"*.out", row_parallel()}};
    for (const int size : {1, 2})
      run_ranks({.size = size}, [&](const Group& ranks) {
        const Weights w(Checkpoint::open(folder.path(), "m"), {}, {.tensor_parallel = ranks},
                        table);
        const auto block = load_block(w, form);
        w.finish();
        const auto got = block(given.x, given.m, given.rope, ops::attention);
        EXPECT_LT(error_of(got, want), 1e-5) << size << " ranks";
        EXPECT_EQ(ranks.traffic().all_reduces, size == 1 ? 0 : 2);
      });
  }
}

// Bits must not depend on which pictures are made together: a request is the same in every batch.
TEST(ModulationsMade, AreThoseOfEachPictureAlone) {
  const auto first = at::randn({4, 64}), second = at::randn({4, 64});
  const auto wide = at::randn({96, 64}), narrow = at::randn({32, 64});
  const auto made = [&](const std::vector<Tensor>& pictures) {
    ModulationsMade made(pictures, 128);
    made.add([&](const Tensor& c) { return at::linear(c, wide); });
    made.add([&](const Tensor& c) { return at::linear(c, narrow); });
    return std::move(made).take();
  };
  const auto together = made({first, second});
  EXPECT_TRUE(at::equal(together[0], made({first}).front()));
  EXPECT_TRUE(at::equal(together[1], made({second}).front()));

  Modulations step(together[1].narrow(0, 2, 1));
  EXPECT_TRUE(at::equal(step.take(96), at::linear(second, wide).narrow(0, 2, 1)));
  EXPECT_TRUE(at::equal(step.take(32), at::linear(second, narrow).narrow(0, 2, 1)));
}

TEST(ModulationsMade, AreCountedBeforeTheyAreUsed) {
  ModulationsMade made({at::ones({1, 4})}, 6);
  made.add([](const Tensor& c) { return c; });
  EXPECT_THROW((void)std::move(made).take(), Error);
  EXPECT_THROW((void)Modulations(Tensor()).take(1), Error);
}

}  // namespace braid::joint_block_test
