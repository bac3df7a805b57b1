// Adapters' effects on weights, against formulas written out here.
#include <ATen/Parallel.h>
#include "adapted_model.h"

#include "comm/thread.h"
#include "weights/codes/int8.h"

namespace braid::adapters_test {

using AdaptersTest = AdaptedModel;

TEST_F(AdaptersTest, AddTheirProductTimesScaleAndAlphaByRank) {
  const auto up = at::randn({16, 3}), down = at::randn({3, 6});
  const auto file = write({{"lora_unet_a.lora_up.weight", up},
                           {"lora_unet_a.lora_down.weight", down},
                           {"lora_unet_a.alpha", at::full({}, 6.0)}});
  expect_added({{.file = file}}, {{"a.weight", 2 * up.mm(down)}});
  expect_added({{.file = file, .scale = -0.25}}, {{"a.weight", -0.5 * up.mm(down)}});
  expect_added({{.file = file}, {.file = file, .scale = 2}}, {{"a.weight", 6 * up.mm(down)}});
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(AdaptersTest, WithoutAlphaCountAsTheyAre) {
  const auto up = at::randn({16, 3}), down = at::randn({3, 6});
  expect_added({{.file = write({{"a.lora_A.weight", down}, {"a.lora_B.weight", up}})}},
               {{"a.weight", up.mm(down)}});
}

TEST_F(AdaptersTest, ChangeThePartsOfFusedLayers) {
  const auto k = at::randn({4, 2}), m = at::randn({8, 2}), down = at::randn({2, 6});
  const auto change = rows_joined(4, k.mm(down), 8) + rows_joined(8, 3 * m.mm(down), 0);
  for (const std::string dot : {".", "_"})
    expect_added(
        {{.file = write({{"transformer.x" + dot + "0" + dot + "to_k.lora_A.weight", down},
                         {"transformer.x" + dot + "0" + dot + "to_k.lora_B.weight", k},
                         {"transformer.x" + dot + "0" + dot + "to_m.lora_A.weight", 3 * down},
                         {"transformer.x" + dot + "0" + dot + "to_m.lora_B.weight", m}})}},
        {{"a.weight", change}});
}

TEST_F(AdaptersTest, ChangeSeveralPartsAsOne) {
  const auto up = at::randn({8, 2}), down = at::randn({2, 6});
  expect_added({{.file = write({{"x.qk_lora.down.weight", down}, {"x.qk_lora.up.weight", up}})}},
               {{"a.weight", rows_joined(0, up.mm(down), 8)}});
}

// diffusers' converter of Z-Image's files drops the joined one (issue 13203 of diffusers).
TEST_F(AdaptersTest, CountOnceWhatAFileHasJoinedAndInParts) {
  const auto down = at::randn({2, 6}), up = at::randn({16, 2});
  Tensors tensors = {{"a.lora_A.weight", down}, {"a.lora_B.weight", up}};
  std::int64_t begin = 0;
  for (const auto& [part, rows] : {std::pair{"q", 4}, {"k", 4}, {"m", 8}}) {
    tensors[text_of("x.0.to_", part, ".lora_A.weight")] = down;
    tensors[text_of("x.0.to_", part, ".lora_B.weight")] = up.narrow(0, begin, rows).contiguous();
    begin += rows;
  }
  expect_added({{.file = write(tensors)}}, {{"a.weight", up.mm(down)}});
  EXPECT_EQ(warnings_.size(), 1u) << "of the joined tensors";
  tensors.erase("x.0.to_q.lora_A.weight");
  tensors.erase("x.0.to_q.lora_B.weight");
  EXPECT_THAT(refusal(tensors),
              testing::HasSubstr("changes rows of a.weight twice, by 'a' and by"));
  const auto half = up.narrow(0, 0, 8).contiguous();
  const auto twice_by = [&](const std::string& one, const std::string& other) {
    return Tensors{{one + ".lora_A.weight", down},
                   {one + ".lora_B.weight", 2 * half},
                   {other + ".lora_A.weight", down},
                   {other + ".lora_B.weight", half}};
  };
  EXPECT_THAT(refusal(twice_by("m", "transformer.m")),
              testing::HasSubstr("changes rows of m.weight twice"));
  expect_added({{.file = write(twice_by("x.m_lora", "x.0.to_m"))}},
               {{"a.weight", rows_joined(8, 2 * half.mm(down), 0)}});
}

TEST_F(AdaptersTest, SwapTheHalvesThatCheckpointsSwap) {
  const auto up = at::randn({8, 2}), down = at::randn({2, 6}), bias = at::randn({8});
  const auto swapped = [](const Tensor& x) {
    return at::cat({x.narrow(0, 4, 4), x.narrow(0, 0, 4)});
  };
  expect_added({{.file = write({{"x.norm.lora_A.weight", down},
                                {"x.norm.lora_B.weight", up},
                                {"x.norm.lora_B.bias", bias},
                                {"x.norm.alpha", at::full({1}, 1.0)}})}},
               {{"m.weight", 0.5 * swapped(up.mm(down))}, {"m.bias", 0.5 * swapped(bias)}});
  expect_added({{.file = write({{"m.lora_A.weight", down}, {"m.lora_B.weight", up}})}},
               {{"m.weight", up.mm(down)}});
}

TEST_F(AdaptersTest, MultiplyKroneckersFactors) {
  const auto w1 = at::randn({4, 2}), w2 = at::randn({4, 3});
  expect_added({{.file = write({{"a.lokr_w1", w1}, {"a.lokr_w2", w2}, {"a.alpha", at::ones({})}})}},
               {{"a.weight", at::kron(w1, w2)}});
  const auto a = at::randn({4, 5}), b = at::randn({5, 3});
  expect_added({{.file = write({{"a.lokr_w1", w1},
                                {"a.lokr_w2_a", a},
                                {"a.lokr_w2_b", b},
                                {"a.alpha", at::ones({})}})}},
               {{"a.weight", at::kron(w1, a.mm(b)) / 5}});
}

TEST_F(AdaptersTest, MultiplyTwoProductsElementByElement) {
  const auto a = at::randn({16, 2}), b = at::randn({2, 6}), c = at::randn({16, 2}),
             d = at::randn({2, 6});
  expect_added({{.file = write({{"a.hada_w1_a", a},
                                {"a.hada_w1_b", b},
                                {"a.hada_w2_a", c},
                                {"a.hada_w2_b", d},
                                {"a.alpha", at::full({}, 4.0)}})}},
               {{"a.weight", 2 * a.mm(b) * c.mm(d)}});
}

TEST_F(AdaptersTest, AddWhatIsStoredAsADifference) {
  const auto weight = at::randn({16, 6}), bias = at::randn({16}), norm = at::randn({6});
  const auto file = write({{"a.diff", weight}, {"a.diff_b", bias}, {"n.diff", norm}});
  expect_added({{.file = file, .scale = 0.5}},
               {{"a.weight", 0.5 * weight}, {"a.bias", 0.5 * bias}, {"n.weight", 0.5 * norm}});
  expect_added({{.file = write({{"a.weight.diff", weight}, {"a.bias.diff", bias}})}},
               {{"a.weight", weight}, {"a.bias", bias}});
}

TEST_F(AdaptersTest, ReplaceNorms) {
  const auto scale = at::randn({6}), up = at::randn({16, 1}), down = at::randn({1, 6});
  const auto got = all(load(
      {{.file = write({{"n.scale", scale}, {"a.lora_A.weight", down}, {"a.lora_B.weight", up}})}}));
  EXPECT_TRUE(at::equal(got.at("n.weight"), scale));
}

// A share is a slice of the merged whole, in numbers and in codes.
class FusedShares : public AdaptersTest, public testing::WithParamInterface<bool> {};

TEST_P(FusedShares, AreSlicesOfTheMergedWhole) {
  const auto of_a = at::rand({1, 6}) + 0.5, of_b = at::rand({1, 16}) + 0.5;
  Tensors tensors = {
      {"a.lora_A.weight", at::randn({2, 6})}, {"a.lora_B.weight", at::randn({16, 2})},
      {"a.diff_b", at::randn({16})},          {"b.lora_A.weight", at::randn({3, 16})},
      {"b.lora_B.weight", at::randn({6, 3})}, {"b.dora_scale", at::rand({6}) + 0.5}};
  const bool has_magnitudes_of_inputs = GetParam();
  if (has_magnitudes_of_inputs) tensors["a.dora_scale"] = of_a, tensors["b.dora_scale"] = of_b;
  const auto file = write(tensors);
  for (const auto quantize :
       {Quantize::kNone, Quantize::kInt8, Quantize::kInt8V1, Quantize::kFloat8}) {
    const auto load_all = [&](const Group& group) {
      const auto w = load({{.file = file, .scale = 0.75}},
                          {.dtype = at::kBFloat16, .tensor_parallel = group, .quantize = quantize});
      return std::tuple((w / "a").matrix("weight", {16, 6}), (w / "a").tensor("bias", {16}),
                        (w / "b").matrix("weight", {6, 16}));
    };
    const auto [a, bias, b] = load_all({});
    run_ranks({.size = 2}, [&, &a = a, &bias = bias, &b = b](const Group& group) {
      const auto [a_share, bias_share, b_share] = load_all(group);
      const auto of_parts = [&](const Tensor& x, std::vector<std::int64_t> parts, int dim) {
        std::vector<Tensor> shares;
        for (const auto& part : x.split_with_sizes(parts, dim))
          shares.push_back(part.chunk(2, dim)[std::size_t(group.rank())]);
        return at::cat(shares, dim);
      };
      EXPECT_TRUE(at::equal(a_share.values_NC, of_parts(a.values_NC, {4, 4, 8}, 0)));
      EXPECT_TRUE(at::equal(bias_share, of_parts(bias, {4, 4, 8}, 0)));
      EXPECT_TRUE(at::equal(b_share.values_NC, of_parts(b.values_NC, {8, 8}, 1)));
      if (quantize != Quantize::kNone) {
        EXPECT_TRUE(at::equal(a_share.scales_N1, of_parts(a.scales_N1, {4, 4, 8}, 0)));
        EXPECT_TRUE(at::equal(b_share.scales_N1, b.scales_N1));
      }
    });
  }
}

TEST_F(AdaptersTest, AreRoundedOnceAndQuantizedAsMergedNumbersAre) {
  const auto up = at::randn({16, 3}), down = at::randn({3, 6});
  const auto file = write({{"a.lora_A.weight", down}, {"a.lora_B.weight", up}});
  const auto merged = (base_.at("a.weight") + up.mm(down)).to(at::kBFloat16);
  const auto w = load({{.file = file}}, {.dtype = at::kBFloat16});
  EXPECT_TRUE(at::equal((w / "a").tensor("weight", {16, 6}), merged));
  const auto codes = load({{.file = file}}, {.dtype = at::kBFloat16, .quantize = Quantize::kInt8});
  const auto got = (codes / "a").matrix("weight", {16, 6});
  const auto want = quantize_rows(merged, Quantize::kInt8);
  EXPECT_TRUE(at::equal(got.values_NC, want.values_NC));
  EXPECT_TRUE(at::equal(got.scales_N1, want.scales_N1));
}

INSTANTIATE_TEST_SUITE_P(MagnitudesOf, FusedShares, testing::Bool(), [](const auto& test) {
  return std::string(test.param ? "Inputs" : "Outputs");
});

Tensor product_of(const LowRank& low_rank) {
  return (low_rank.up_NR * low_rank.scales_R).mm(low_rank.down_RC);
}

// The product beside a share is a slice of that beside the whole.
TEST_F(AdaptersTest, StandBesideSharesOfEveryKind) {
  const auto up = at::randn({4, 2}), down = at::randn({2, 6});
  const auto b_up = at::randn({6, 3}), b_down = at::randn({3, 16});
  const auto file = write({{"x.0.to_k.lora_A.weight", down},
                           {"x.0.to_k.lora_B.weight", up},
                           {"b.lora_A.weight", b_down},
                           {"b.lora_B.weight", b_up}});
  const auto a = rows_joined(4, up.mm(down), 8), b = b_up.mm(b_down);
  run_ranks({.size = 2}, [&](const Group& group) {
    const auto rank = std::size_t(group.rank());
    const Weights w(source({{.file = file, .scale = 2}}, AdapterMode::kUnmerged),
                    {.tensor_parallel = group}, shardings());
    const auto a_share = (w / "a").matrix("weight", {16, 6});
    const auto b_share = (w / "b").matrix("weight", {6, 16});
    for (const auto* const name : {"a", "m"})
      (void)(w / name).tensor("bias", base_.at(std::string(name) + ".bias").sizes());
    (void)(w / "m").matrix("weight", {8, 6});
    (void)(w / "n").tensor("weight", {6});
    EXPECT_FALSE(a_share.has_low_rank());
    w.finish();
    const auto a_want = at::cat({a.narrow(0, 0, 4).chunk(2)[rank], a.narrow(0, 4, 4).chunk(2)[rank],
                                 a.narrow(0, 8, 8).chunk(2)[rank]});
    const auto b_want =
        at::cat({b.narrow(1, 0, 8).chunk(2, 1)[rank], b.narrow(1, 8, 8).chunk(2, 1)[rank]}, 1);
    EXPECT_TRUE(at::allclose(product_of(*a_share.low_rank), 2 * a_want, 1e-6, 1e-6));
    EXPECT_TRUE(at::allclose(product_of(*b_share.low_rank), 2 * b_want, 1e-6, 1e-6));
  });
}

TEST_F(AdaptersTest, BesideTakeEachOthersPlace) {
  const auto pair = [](const std::string& layer, std::int64_t rows, std::int64_t columns) {
    return Tensors{{layer + ".lora_A.weight", at::randn({2, columns})},
                   {layer + ".lora_B.weight", at::randn({rows, 2})}};
  };
  const auto of_a = pair("a", 16, 6), of_b = pair("b", 6, 16);
  const Weights w(source({{.file = write(of_a, "a")}}, AdapterMode::kUnmerged), {});
  const auto a = (w / "a").matrix("weight", {16, 6}), b = (w / "b").matrix("weight", {6, 16});
  (void)(w / "a").tensor("bias", {16});
  (w / "m").skip();
  unmerged_->switch_to(open_adapters({{.file = folder_ / "a.safetensors"}}));
  EXPECT_TRUE(at::equal(product_of(*a.low_rank),
                        of_a.at("a.lora_B.weight").mm(of_a.at("a.lora_A.weight"))));
  EXPECT_FALSE(b.has_low_rank());
  const auto change_b = open_adapters({{.file = write(of_b, "b"), .scale = -1}});
  unmerged_->switch_to(change_b);
  EXPECT_FALSE(a.has_low_rank());
  EXPECT_TRUE(at::equal(product_of(*b.low_rank),
                        (-of_b.at("b.lora_B.weight")).mm(of_b.at("b.lora_A.weight"))));

  // Adapters that do not fit leave the current ones in place.
  auto with_bias = of_a;
  with_bias["a.lora_B.bias"] = at::ones({16});
  auto with_magnitude = of_a;
  with_magnitude["a.dora_scale"] = at::ones({16});
  for (const auto& wrong : {with_bias, with_magnitude, pair("a", 15, 6), pair("z", 16, 6)}) {
    const auto opened = open_adapters({{.file = write(wrong, "wrong")}});
    EXPECT_THROW(unmerged_->switch_to(opened), InputError);
    EXPECT_TRUE(b.has_low_rank());
    EXPECT_FALSE(a.has_low_rank());
  }
  unmerged_->switch_to({});
  EXPECT_FALSE(b.has_low_rank());
}

class AdaptersOnThreads : public AdaptersTest {};

// Weights are looked up on all threads at once.
TEST_F(AdaptersOnThreads, AreRefusedForTheFirstWeightTheyDoNotFit) {
  const Weights w(source({}, AdapterMode::kUnmerged), {});
  const auto a = (w / "a").matrix("weight", {16, 6}), b = (w / "b").matrix("weight", {6, 16});
  const auto wrong = open_adapters({{.file = write({{"a.lora_A.weight", at::randn({2, 7})},
                                                    {"a.lora_B.weight", at::randn({16, 2})},
                                                    {"b.lora_A.weight", at::randn({2, 17})},
                                                    {"b.lora_B.weight", at::randn({6, 2})}})}});
  const auto threads = at::get_num_threads();
  at::set_num_threads(2);
  for (int i = 0; i < 20; ++i)
    EXPECT_THAT(message_of([&] { unmerged_->switch_to(wrong); }), testing::HasSubstr("'a'"));
  at::set_num_threads(threads);
}

TEST_F(AdaptersTest, ArePartOfAWeightsIdentity) {
  const Tensors tensors = {{"a.lora_A.weight", at::randn({3, 6})},
                           {"a.lora_B.weight", at::randn({16, 3})}};
  auto others = tensors;
  others["a.lora_B.weight"] = at::randn({16, 3});
  const auto file = write(tensors), other = write(others, "other"), same = write(tensors, "same");
  const auto identity = [&](const std::vector<Adapter>& adapters) {
    const TensorRequest request{.layer = "a",
                                .name = "weight",
                                .shape = {16, 6},
                                .dtype = at::kFloat,
                                .kind = TensorRequest::Kind::kMatrix,
                                .shard = {.rows = {{.begin = 0, .count = 16}}}};
    return identity_of(*source(adapters)->find(request));
  };
  EXPECT_EQ(identity({{.file = file}}), identity({{.file = same}}));
  EXPECT_NE(identity({{.file = file}}), identity({}));
  EXPECT_NE(identity({{.file = file}}), identity({{.file = other}}));
  EXPECT_NE(identity({{.file = file}}), identity({{.file = file, .scale = 0.5}}));
  EXPECT_NE(identity({{.file = file}}), identity({{.file = file}, {.file = file}}));
  for (const auto& shape : {std::vector<std::int64_t>{16, 1}, {1, 6}}) {
    auto dora = tensors;
    dora["a.dora_scale"] = at::ones(shape);
    const auto made = identity({{.file = write(dora, "dora")}});
    EXPECT_NE(identity({{.file = file}}), made);
    dora["a.dora_scale"].fill_(2);
    EXPECT_NE(identity({{.file = write(dora, "dora2")}}), made);
  }
}

}  // namespace braid::adapters_test
