// DoRA's magnitudes, against formulas written out here.
#include "adapted_model.h"

namespace braid::dora_test {

using testing::HasSubstr;
using DoraTest = AdaptedModel;

TEST_F(DoraTest, GivesRowsTheMagnitudesOfOutputs) {
  const auto up = at::randn({8, 2}), down = at::randn({2, 6}), m = at::rand({8}) + 0.5;
  for (const auto& magnitude : {m, m.unsqueeze(1)}) {
    const auto got = all(load({{.file = write({{"transformer.x.0.to_m.lora_A.weight", down},
                                               {"transformer.x.0.to_m.lora_B.weight", up},
                                               {"transformer.x.0.to_m.dora_scale", magnitude}}),
                                .scale = 0.5}}));
    const auto sum = base_.at("a.weight").narrow(0, 8, 8) + 0.5 * up.mm(down);
    const auto want = m.unsqueeze(1) * sum / sum.norm(2, {1}, true);
    EXPECT_TRUE(at::allclose(got.at("a.weight").narrow(0, 8, 8), want, 1e-6, 1e-6));
    EXPECT_TRUE(
        at::equal(got.at("a.weight").narrow(0, 0, 8), base_.at("a.weight").narrow(0, 0, 8)));
  }
}

// peft begins magnitudes as the lengths of the base's rows, and leaves those that a file lacks so.
TEST_F(DoraTest, KeepsTheLengthsOfRowsWithoutMagnitudesWherePeftSaysSo) {
  const auto up = at::randn({8, 2}), down = at::randn({2, 6});
  const std::string to_m = "base_model.model.x.0.to_m.";
  const auto merged_by = [&](const std::string& config, Tensors tensors, double scale) {
    tensors.insert({{to_m + "lora_A.weight", down}, {to_m + "lora_B.weight", up}});
    write_file(folder_ / "adapter_config.json", config);
    return all(load({{.file = write(tensors, "adapter_model"), .scale = scale}})).at("a.weight");
  };
  const auto base = base_.at("a.weight").narrow(0, 8, 8);
  const auto lengths = base.norm(2, {1}, true);
  const std::string dora = R"({"r": 2, "lora_alpha": 6, "use_dora": true})";
  for (const double scale : {1., 0.5, 0.}) {
    const auto sum = base + scale * 3 * up.mm(down);
    const auto got = merged_by(dora, {}, scale);
    EXPECT_TRUE(at::allclose(got.narrow(0, 8, 8), lengths * sum / sum.norm(2, {1}, true), 1e-5));
    EXPECT_TRUE(at::equal(got.narrow(0, 0, 8), base_.at("a.weight").narrow(0, 0, 8)));
  }
  const auto m = at::rand({8}) + 0.5;
  const auto sum = base + 3 * up.mm(down);
  const auto with = merged_by(dora, {{to_m + "lora_magnitude_vector", m}}, 1);
  EXPECT_TRUE(
      at::allclose(with.narrow(0, 8, 8), m.unsqueeze(1) * sum / sum.norm(2, {1}, true), 1e-5));
  const auto plain = merged_by(R"({"r": 2, "lora_alpha": 6, "use_dora": false})", {}, 1);
  EXPECT_TRUE(at::allclose(plain.narrow(0, 8, 8), sum, 1e-5));
}

// LyCORIS' and OneTrainer's: lengths of columns, over the rows of one module.
TEST_F(DoraTest, GivesColumnsTheMagnitudesOfInputs) {
  const auto up = at::randn({8, 2}), down = at::randn({2, 6}), m = at::rand({1, 6}) + 0.5;
  const auto want = [&](const Tensor& weight) {
    const auto sum = weight + 0.5 * up.mm(down);
    return m * sum / sum.norm(2, {0}, true);
  };
  const auto got = all(load({{.file = write({{"x.0.to_m.lora_A.weight", down},
                                             {"x.0.to_m.lora_B.weight", up},
                                             {"x.0.to_m.dora_scale", m},
                                             {"x.norm.lora_A.weight", down},
                                             {"x.norm.lora_B.weight", up},
                                             {"x.norm.dora_scale", m}}),
                              .scale = 0.5}}));
  const auto& a = base_.at("a.weight");
  EXPECT_TRUE(
      at::allclose(got.at("a.weight").narrow(0, 8, 8), want(a.narrow(0, 8, 8)), 1e-6, 1e-6));
  EXPECT_TRUE(at::equal(got.at("a.weight").narrow(0, 0, 8), a.narrow(0, 0, 8)));
  const auto swapped = want(base_.at("m.weight").roll({4}, {0})).roll({4}, {0});
  EXPECT_TRUE(at::allclose(got.at("m.weight"), swapped, 1e-6, 1e-6));
}

// LyCORIS has magnitudes for each of its kinds.
TEST_F(DoraTest, GivesSumsWithHadamardAndKroneckerProductsTheirMagnitudes) {
  const auto up1 = at::randn({8, 2}), down1 = at::randn({2, 6}), left = at::randn({2, 3});
  const auto up2 = at::randn({8, 2}), down2 = at::randn({2, 6}), right = at::randn({4, 2});
  const auto outputs = at::rand({8, 1}) + 0.5, inputs = at::rand({1, 6}) + 0.5;
  const Tensors loha = {{"x.0.to_m.hada_w1_a", up1},
                        {"x.0.to_m.hada_w1_b", down1},
                        {"x.0.to_m.hada_w2_a", up2},
                        {"x.0.to_m.hada_w2_b", down2}};
  const Tensors lokr = {{"x.0.to_m.lokr_w1", left}, {"x.0.to_m.lokr_w2", right}};
  for (const auto& [tensors, delta] :
       {std::pair(loha, up1.mm(down1) * up2.mm(down2)), {lokr, at::kron(left, right)}}) {
    const auto sum = base_.at("a.weight").narrow(0, 8, 8) + delta;
    for (const auto& magnitude : {outputs, inputs}) {
      auto with = tensors;
      with["x.0.to_m.dora_scale"] = magnitude;
      const auto want = magnitude * sum / sum.norm(2, {magnitude.size(0) == 1 ? 0 : 1}, true);
      const auto got = all(load({{.file = write(with)}})).at("a.weight");
      EXPECT_TRUE(at::allclose(got.narrow(0, 8, 8), want, 1e-6, 1e-6));
      EXPECT_TRUE(at::equal(got.narrow(0, 0, 8), base_.at("a.weight").narrow(0, 0, 8)));
    }
  }
}

// LyCORIS' and peft's, whose shapes differ where a matrix is a convolution.
TEST_F(DoraTest, GivesConvolutionsTheMagnitudesOfOutputs) {
  const auto base = at::randn({8, 3, 1, 2, 2});
  write_file(folder_ / "m.safetensors", write_safetensors({{"c.weight", base}}));
  const auto up = at::randn({8, 2, 1, 1, 1}), down = at::randn({2, 3, 1, 2, 2});
  const auto m = at::rand({8}) + 0.5;
  const auto sum = base.flatten(1) + up.flatten(1).mm(down.flatten(1));
  const auto want = (m.unsqueeze(1) * sum / sum.norm(2, {1}, true)).view(base.sizes());
  const auto with = [&](const std::string& name, const Tensor& magnitude) {
    const Weights w = load(
        {{.file = write(
              {{"c.lora_A.weight", down}, {"c.lora_B.weight", up}, {"c." + name, magnitude}})}});
    return (w / "c").tensor("weight", base.sizes());
  };
  EXPECT_TRUE(at::allclose(with("dora_scale", m.view({8, 1, 1, 1, 1})), want, 1e-6, 1e-6));
  EXPECT_TRUE(
      at::allclose(with("lora_magnitude_vector", m.view({1, 8, 1, 1, 1})), want, 1e-6, 1e-6));
  EXPECT_THAT(message_of([&] {
                (void)with("dora_scale", at::ones({1, 4, 1, 1, 1}));
              }),
              HasSubstr("each of 8 outputs or 3 inputs, its shape is [1, 4, 1, 1, 1]"));
}

// tests/data/convolutions, written by tools/parity/dump_convolutions.py.
TEST_F(DoraTest, MergesConvolutionsAsLycorisAndPeftDo) {
  const auto data = fs::path(BRAID_SOURCE_DIR) / "tests/data/convolutions";
  fs::copy_file(data / "base.safetensors", folder_ / "m.safetensors",
                fs::copy_options::overwrite_existing);
  const auto merged = Checkpoint::open_file(data / "merged.safetensors");
  EXPECT_EQ(merged.tensors().size(), 12u);
  for (const auto& [name, stored] : merged.tensors()) {
    const auto want = stored.view();
    const Weights w = load({{.file = data / (name + ".safetensors")}});
    const auto got = (w / "c").tensor("weight", want.sizes());
    EXPECT_LT((got - want).abs().max().item<double>(), 2e-6 * want.abs().max().item<double>())
        << name;
  }
}

// Rows or columns of zeros have no direction to give a length to.
TEST_F(DoraTest, LeavesZerosWithoutLength) {
  for (const auto& magnitude : {at::ones({16}), at::ones({1, 6})}) {
    const auto got = all(load({{.file = write({{"a.lora_A.weight", at::zeros({1, 6})},
                                               {"a.lora_B.weight", at::zeros({16, 1})},
                                               {"a.dora_scale", magnitude}}),
                                .scale = 1},
                               {.file = write({{"a.set_weight", at::zeros({16, 6})}}, "zero")},
                               {.file = folder_ / "lora.safetensors"}}));
    EXPECT_TRUE(at::equal(got.at("a.weight"), at::zeros({16, 6})));
  }
}

}  // namespace braid::dora_test
