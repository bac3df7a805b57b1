// Adapters whose tensors are codes with scales change a model by the numbers that they stand for.
#include <functional>

#include "adapted_model.h"

namespace braid::coded_adapters_test {

using testing::HasSubstr;

// Tensors as a file has them, and the numbers they stand for.
struct Coded {
  Tensors stored;
  Tensor numbers;
};

Tensor of_rows(const Tensor& x, const Tensor& scales) {
  std::vector<std::int64_t> shape(std::size_t(x.dim()), 1);
  if (x.dim() > 0) shape[0] = x.size(0);
  return scales.view(shape);
}

// One scale per row, as a vector, in a tensor NAME_scale.
Coded float8_of_rows(const std::string& name, const Tensor& x) {
  const auto scales = x.flatten(1).abs().amax(1) / 400;
  const auto codes = (x / of_rows(x, scales)).to(at::kFloat8_e4m3fn);
  return {{{name, codes}, {name + "_scale", scales}}, codes.to(at::kFloat) * of_rows(x, scales)};
}

Coded float8_of_all(const std::string& name, const Tensor& x) {
  const auto scale = x.abs().max() / 400;
  const auto codes = (x / scale).to(at::kFloat8_e4m3fn);
  return {{{name, codes}, {name + "_scale", scale}}, codes.to(at::kFloat) * scale};
}

// ComfyUI's older spelling.
Coded older_float8(const std::string& name, const Tensor& x) {
  auto coded = float8_of_all(name, x);
  auto scale = coded.stored.extract(name + "_scale");
  scale.key() = name.substr(0, name.size() - std::string("weight").size()) + "scale_weight";
  coded.stored.insert(std::move(scale));
  coded.stored["scaled_fp8"] = at::zeros({2}).to(at::kFloat8_e4m3fn);
  return coded;
}

Coded with_mark(Coded coded, const std::string& name, const std::string& format) {
  const auto mark = "{\"format\":\"" + format + "\"}";
  coded.stored[name.substr(0, name.size() - std::string("weight").size()) + "comfy_quant"] =
      at::from_blob(const_cast<char*>(mark.data()), {std::int64_t(mark.size())}, at::kByte).clone();
  return coded;
}

Coded marked_float8(const std::string& name, const Tensor& x) {
  return with_mark(float8_of_all(name, x), name, "float8_e4m3fn");
}

Coded int8_of_rows(const std::string& name, const Tensor& x) {
  const auto scales = x.abs().amax(1, true) / 127;
  const auto codes = (x / scales).round().to(at::kChar);
  return {{{name, codes}, {name + "_scale", scales.to(at::kBFloat16)}},
          codes.to(at::kFloat) * scales.to(at::kBFloat16).to(at::kFloat)};
}

Coded marked_int8(const std::string& name, const Tensor& x) {
  return with_mark(int8_of_rows(name, x), name, "int8_tensorwise");
}

using Coding = std::function<Coded(const std::string&, const Tensor&)>;

class CodedAdapters : public AdaptedModel {
 protected:
  // Codes the tensor, adds it to the file and returns the numbers it stands for.
  Tensor add(const Coding& coding, const std::string& name, const Tensor& x) {
    auto coded = coding(name, x);
    file_.merge(coded.stored);
    return coded.numbers;
  }
  Tensors file_;
};

const std::pair<const char*, Coding> kCodings[] = {
    {"float8 of rows", float8_of_rows}, {"float8 of all", float8_of_all},
    {"older float8", older_float8},     {"float8 with a mark", marked_float8},
    {"int8 of rows", int8_of_rows},     {"int8 with a mark", marked_int8}};

TEST_F(CodedAdapters, AddTheProductOfTheirNumbers) {
  for (const auto& [name, coding] : kCodings) {
    SCOPED_TRACE(name);
    file_ = {{"a.alpha", at::full({}, 6.0)}};
    const auto down = add(coding, "a.lora_A.weight", at::randn({3, 6}));
    const auto up = add(coding, "a.lora_B.weight", at::randn({16, 3}));
    const auto change = 2 * up.mm(down);
    expect_added({{.file = write(file_)}}, {{"a.weight", change}});
    const Weights w(source({{.file = write(file_)}}, AdapterMode::kUnmerged), {});
    const auto a = (w / "a").matrix("weight", {16, 6});
    (void)(w / "a").tensor("bias", {16});
    for (const auto* const layer : {"b", "m", "n"}) (w / layer).skip();
    w.finish();
    const auto& [kept_down, scales, kept_up] = *a.low_rank;
    EXPECT_TRUE(at::allclose((kept_up * scales).mm(kept_down), change, 1e-6, 1e-6));
    EXPECT_EQ(warnings_, std::vector<std::string>()) << "no scale is left over";
  }
}

TEST_F(CodedAdapters, MayBeOfEveryKind) {
  const Coding coding = float8_of_rows;
  const auto left = add(coding, "a.lokr_w1", at::randn({2, 2}));
  const auto right = add(coding, "a.lokr_w2", at::randn({8, 3}));
  const auto up1 = add(coding, "b.hada_w1_a", at::randn({6, 2}));
  const auto down1 = add(coding, "b.hada_w1_b", at::randn({2, 16}));
  const auto up2 = add(coding, "b.hada_w2_a", at::randn({6, 2}));
  const auto down2 = add(coding, "b.hada_w2_b", at::randn({2, 16}));
  const auto bias = add(float8_of_all, "a.diff_b", at::randn({16}));
  const auto norm = add(float8_of_all, "n.diff", at::randn({6}));
  const auto m = add(coding, "m.diff", at::randn({8, 6}));
  expect_added({{.file = write(file_)}}, {{"a.weight", at::kron(left, right)},
                                          {"a.bias", bias},
                                          {"b.weight", up1.mm(down1) * up2.mm(down2)},
                                          {"n.weight", norm},
                                          {"m.weight", m}});
}

TEST_F(CodedAdapters, ReplaceWholeTensorsByTheirNumbers) {
  const auto k = add(float8_of_rows, "transformer.x.0.to_k.weight", at::randn({4, 6}));
  const auto bias = add(float8_of_all, "m.bias", at::randn({8}));
  file_["n.diff"] = at::zeros({6});
  const auto got = all(load({{.file = write(file_)}}));
  EXPECT_TRUE(at::allclose(got.at("a.weight").narrow(0, 4, 4), k, 1e-6, 1e-6));
  EXPECT_TRUE(at::allclose(got.at("m.bias"), bias, 1e-6, 1e-6));
}

// Files that differ in a scale alone are other adapters to pages that are kept on disk.
TEST_F(CodedAdapters, AreToldApartByTheirScales) {
  const auto codes = at::ones({8, 6}).to(at::kFloat8_e4m3fn);
  const auto identity = [&](double scale) {
    const auto file = write({{"m.diff", codes}, {"m.diff_scale", at::full({}, scale)}});
    const PartAdapters adapters({.names = names(), .shardings = {}, .others = {}, .warn = {}},
                                open_adapters({{.file = file}}));
    return adapters
        .changes_of({.layer = "m",
                     .name = "weight",
                     .shape = {8, 6},
                     .dtype = at::kFloat,
                     .kind = TensorRequest::Kind::kMatrix})
        .identity();
  };
  EXPECT_EQ(identity(0.5), identity(0.5));
  EXPECT_NE(identity(0.5), identity(0.25));
}

TEST_F(CodedAdapters, WithScalesThatDoNotFitAreRefused) {
  const auto up = at::randn({16, 3}), down = at::randn({3, 6});
  const auto with = [&](const Tensor& codes, const std::string& name, const Tensor& scale) {
    return refusal(
        {{"a.lora_A.weight", codes}, {"a.lora_A." + name, scale}, {"a.lora_B.weight", up}});
  };
  const auto float8 = down.to(at::kFloat8_e4m3fn), int8 = (down * 20).to(at::kChar);
  EXPECT_THAT(with(float8, "weight_scale", at::ones({4})), HasSubstr("it has [4]"));
  EXPECT_THAT(with(int8, "weight_scale", at::ones({4})), HasSubstr("it has [4]"));
  EXPECT_THAT(with(float8, "weight_scale", at::full({}, NAN)), HasSubstr("that are not finite"));
  for (const std::string name : {"weight_scale", "scale_weight", "weight_scale_inv"})
    EXPECT_THAT(with(down.to(at::kBFloat16), name, at::ones({3})),
                HasSubstr("tensor 'a.lora_A." + name +
                          "' should be the scale of codes in 'a.lora_A.weight', which holds BF16"));
  EXPECT_THAT(refusal({{"a.lora_A.weight_scale", at::ones({3})}, {"a.lora_B.weight", up}}),
              HasSubstr("in 'a.lora_A.weight', which is not there"));
  EXPECT_THAT(refusal({{"a.lora_A.weight", int8}, {"a.lora_B.weight", up}}),
              HasSubstr("should hold floating-point numbers, its dtype is I8"));
}

}  // namespace braid::coded_adapters_test
