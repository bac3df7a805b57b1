// Conversions of files whose numbers have other dtypes than most: nothing is rounded that need not.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "message_of.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/engine/engine.h"
#include "temporary_folder.h"
#include "weights/codes/int8.h"
#include "weights/files/safetensors_writer.h"

namespace braid::stored_numbers_test {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kWeights = "diffusion_pytorch_model";
constexpr const char* kMatrix = "transformer_blocks.0.attn.to_q.weight";
constexpr const char* kVector = "transformer_blocks.0.attn.norm_q.weight";

class StoredNumbers : public testing::Test {
 protected:
  using Change = std::function<Tensor(const std::string& name, const Tensor& x)>;

  // The bundled model with changed numbers in its transformer.
  fs::path model_with(const Change& change) const {
    const auto out = folder_ / "model";
    fs::copy(model_, out, fs::copy_options::recursive);
    std::map<std::string, Tensor> tensors;
    const auto stored = Checkpoint::open(out / "transformer", kWeights);
    for (const auto& [name, one] : stored.tensors())
      tensors[name] = change(name, one.view().clone());
    for (const auto& entry : fs::directory_iterator(out / "transformer"))
      if (entry.path().extension() != ".json" || entry.path().stem().has_extension())
        fs::remove(entry.path());
    write_file(out / "transformer" / (std::string(kWeights) + ".safetensors"),
               write_safetensors(tensors));
    return out;
  }
  // As people quantize by casting: matrices alone, without scales.
  fs::path float8_model() const {
    return model_with([](const std::string&, const Tensor& x) {
      return x.dim() == 2 ? x.to(at::kFloat8_e4m3fn) : x.to(at::kBFloat16);
    });
  }
  static Checkpoint transformer_of(const fs::path& model) {
    return Checkpoint::open(model / "transformer", kWeights);
  }
  static Tensor numbers(const Checkpoint& checkpoint, const std::string& name) {
    return checkpoint.find(name)->view().to(at::kFloat);
  }
  static Tensor velocity(PipelineOptions options) {
    options.dtype = Dtype::kBfloat16;
    const Engine engine(options, {});
    const Request request{.prompts = {"a"}, .width = 64, .height = 48, .steps = 1};
    return engine.generate(request, {}, {.record = RecordTensors::kYes})
        .facts.recording.at("velocity_first");
  }

  const fs::path model_ = fs::path(BRAID_SOURCE_DIR) / "models/demo";
  TemporaryFolder folder_;
};

TEST_F(StoredNumbers, OfEightBitsAreWrittenInSixteenWithTheOthersUnrounded) {
  const auto model = float8_model(), out = folder_ / "out";
  convert({.model = model, .out = out});
  const auto before = transformer_of(model), after = transformer_of(out);
  EXPECT_EQ(before.dtype(), at::kFloat8_e4m3fn) << "that most have";
  for (const auto& [name, stored] : before.tensors()) {
    ASSERT_NE(after.find(name), nullptr) << name;
    EXPECT_EQ(after.find(name)->dtype(), at::kBFloat16) << name;
    EXPECT_TRUE(at::equal(numbers(after, name), numbers(before, name))) << name;
  }
  EXPECT_TRUE(at::equal(velocity({.model = out}), velocity({.model = model})));
}

TEST_F(StoredNumbers, OfEightBitsTakeAnAdapterInSixteen) {
  const auto model = float8_model(), lora = folder_ / "lora.safetensors", out = folder_ / "out";
  const auto width = numbers(transformer_of(model), kMatrix).size(0);
  const auto down = at::randn({2, width}) * 0.02, up = at::randn({width, 2}) * 0.02;
  const std::string layer = "transformer.transformer_blocks.0.attn.to_q.";
  write_file(lora,
             write_safetensors({{layer + "lora_A.weight", down}, {layer + "lora_B.weight", up}}));
  convert({.model = model, .adapters = {{lora, 1}}, .out = out});
  const auto want = (numbers(transformer_of(model), kMatrix) + up.matmul(down)).to(at::kBFloat16);
  EXPECT_TRUE(at::equal(numbers(transformer_of(out), kMatrix), want.to(at::kFloat)));
}

TEST_F(StoredNumbers, OfEightBitsAreQuantizedAsWhileLoading) {
  const auto model = float8_model();
  for (const auto form : {Quantize::kInt8, Quantize::kInt8V1, Quantize::kFloat8}) {
    const auto out = folder_ / std::to_string(int(form));
    convert({.model = model, .out = out, .memory = {.quantize = form}});
    EXPECT_TRUE(at::equal(velocity({.model = out}),
                          velocity({.model = model, .memory = {.quantize = form}})))
        << int(form);
    EXPECT_EQ(transformer_of(out).find(kVector)->dtype(), at::kBFloat16) << int(form);
  }
}

// "As they are stored" holds for each, and another dtype for all.
TEST_F(StoredNumbers, StayWhereOnlyAFewAreWider) {
  const auto is_wide = [](const std::string& name) { return name == kMatrix || name == kVector; };
  const auto model = model_with([&](const std::string& name, const Tensor& x) {
    return is_wide(name) ? x.to(at::kFloat) + 1e-6 : x.to(at::kBFloat16);
  });
  convert({.model = model, .out = folder_ / "auto"});
  convert({.model = model, .out = folder_ / "half", .dtype = Dtype::kFloat16});
  const auto before = transformer_of(model), after = transformer_of(folder_ / "auto");
  for (const auto* const name : {kMatrix, kVector}) {
    EXPECT_EQ(after.find(name)->dtype(), at::kFloat) << name;
    EXPECT_TRUE(at::equal(numbers(after, name), numbers(before, name))) << name;
  }
  EXPECT_EQ(after.dtype(), at::kBFloat16);
  EXPECT_EQ(transformer_of(folder_ / "half").find(kMatrix)->dtype(), at::kHalf);
}

// Files that loading does not read may hold what JSON has no words for, and links may lead nowhere.
TEST_F(StoredNumbers, AreWrittenBesideOddFiles) {
  const auto model = model_with([](const std::string&, const Tensor& x) { return x; });
  for (const auto* const file : {"model_index.json", "transformer/config.json"}) {
    auto text = read_file(model / file);
    text.insert(text.find('{') + 1, "\"my_note\": NaN, \"my_limit\": -Infinity, ");
    fs::remove(model / file);
    write_file(model / file, text);
  }
  fs::create_symlink("loop", model / "loop");
  fs::create_symlink("nowhere", model / "tokenizer/gone");
  write_file(model / "readme.note", "kept");
  std::vector<std::string> said;
  convert({.model = model, .out = folder_ / "out"},
          {.warning = [&](const std::string& sentence) { said.push_back(sentence); }});
  EXPECT_THAT(said, ElementsAre(HasSubstr("tokenizer/gone\" is not copied")));
  EXPECT_EQ(read_file(folder_ / "out/readme.note"), "kept");
  EXPECT_TRUE(at::equal(velocity({.model = folder_ / "out"}), velocity({.model = model})));
}

}  // namespace braid::stored_numbers_test
