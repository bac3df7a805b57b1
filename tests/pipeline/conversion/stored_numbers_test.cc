// Conversions of files whose numbers have other dtypes than most: nothing is rounded that need not.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

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
  // People quantize by casting the matrices alone, without scales.
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

using SlowStoredNumbers = StoredNumbers;

TEST_F(SlowStoredNumbers, OfEightBitsAreWrittenInSixteenWithTheOthersUnrounded) {
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

TEST_F(SlowStoredNumbers, OfEightBitsAreQuantizedAsWhileLoading) {
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
TEST_F(SlowStoredNumbers, StayWhereOnlyAFewAreWider) {
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

// ------------------------------------------------------------------------- joined tensors

// A type of tensors in GGUF files, by its number there.
enum class Type { kFloat32 = 0, kFloat16 = 1, kQ8_0 = 8, kBfloat16 = 30 };
constexpr auto kTypes = {Type::kFloat32, Type::kFloat16, Type::kQ8_0, Type::kBfloat16};

at::ScalarType dtype_written(Type type) {
  return type == Type::kFloat32 ? at::kFloat : type == Type::kFloat16 ? at::kHalf : at::kBFloat16;
}

std::string bytes_of(const Tensor& x) {
  const auto dense = x.contiguous();
  return {static_cast<const char*>(dense.const_data_ptr()), dense.nbytes()};
}

template <class Number>
std::string little_endian(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

// A tensor as a file has it, and the float32 numbers that it stands for.
struct GgufTensor {
  Type type;
  std::string bytes;
  Tensor numbers;
};

// Codes of Q8_0: 32 of them behind their scale, in float16.
GgufTensor in_blocks(at::IntArrayRef shape, double largest_scale) {
  const auto count = c10::multiply_integers(shape) / 32;
  const auto scales = (at::rand({count, 1}) * largest_scale).to(at::kHalf);
  const auto codes = at::randint(-127, 128, {count, 32}, at::kChar);
  GgufTensor tensor{.type = Type::kQ8_0, .bytes = {}, .numbers = {}};
  for (std::int64_t i = 0; i < count; ++i) tensor.bytes += bytes_of(scales[i]) + bytes_of(codes[i]);
  tensor.numbers = (codes.to(at::kFloat) * scales.to(at::kFloat)).view(shape);
  return tensor;
}

// Numbers that no other of the types holds.
GgufTensor random_tensor(Type type, at::IntArrayRef shape) {
  if (type == Type::kQ8_0) return in_blocks(shape, 0.01);
  auto numbers = at::randn(shape).to(dtype_written(type));
  if (type != Type::kFloat16) {
    numbers.flatten()[0] = 99840;  // both are numbers of bfloat16
    numbers.flatten()[1] = 1e-9;
  }
  return {.type = type, .bytes = bytes_of(numbers), .numbers = numbers.to(at::kFloat)};
}

void write_gguf(const fs::path& path, const std::map<std::string, GgufTensor>& tensors) {
  std::string header = "GGUF" + little_endian(std::uint32_t(3)) +
                       little_endian(std::uint64_t(tensors.size())) +
                       little_endian(std::uint64_t(0));
  std::string data;
  const auto align = [](std::string& bytes) { bytes.resize((bytes.size() + 31) / 32 * 32); };
  for (const auto& [name, tensor] : tensors) {
    const auto shape = tensor.numbers.sizes();
    header += little_endian(std::uint64_t(name.size())) + name;
    header += little_endian(std::uint32_t(shape.size()));
    for (auto extent = shape.rbegin(); extent != shape.rend(); ++extent)
      header += little_endian(std::uint64_t(*extent));
    header += little_endian(std::uint32_t(tensor.type)) + little_endian(std::uint64_t(data.size()));
    data += tensor.bytes;
    align(data);
  }
  align(header);
  write_file(path, header + data);
}

class JoinedNumbers : public testing::Test {
 protected:
  using ChooseType = std::function<Type(const std::string& name)>;

  // A transformer in one file, whose layers' numbers are of the chosen types.
  std::map<std::string, GgufTensor> file_with(const ChooseType& type_of) const {
    std::map<std::string, GgufTensor> tensors;
    const auto stored = Checkpoint::open(basic_ / "transformer", kWeights);
    for (const auto& [name, one] : stored.tensors())
      tensors[name] = random_tensor(type_of(name), one.entry.shape);
    return tensors;
  }
  Checkpoint converted(const std::map<std::string, GgufTensor>& tensors,
                       ConvertOptions::Form form = ConvertOptions::Form::kDirectory) {
    const auto number = std::to_string(++conversions_);
    const bool is_file = form == ConvertOptions::Form::kSingleFile;
    const auto file = folder_ / (number + ".gguf");
    const auto out = folder_ / (number + (is_file ? ".safetensors" : ""));
    write_gguf(file, tensors);
    convert({.model = file, .components = basic_, .out = out, .form = form});
    return is_file ? Checkpoint::open_file(out) : Checkpoint::open(out / "transformer", kWeights);
  }
  static bool is_of(const std::string& name, const std::vector<std::string>& layers) {
    return std::ranges::any_of(
        layers, [&](const std::string& layer) { return name.find(layer) != name.npos; });
  }

  const fs::path basic_ = fs::path(BRAID_SOURCE_DIR) / "tests/data/parity/basic/model";
  TemporaryFolder folder_;
  int conversions_ = 0;
};

using SlowJoinedNumbers = JoinedNumbers;

// Layers join q, k, v and a block's first product; files have them apart, as quantizers mix types.
TEST_F(SlowJoinedNumbers, AreWrittenAsEachIsStored) {
  for (const auto type : kTypes)
    for (const auto other : kTypes) {
      const auto tensors = file_with([&](const std::string& name) {
        if (is_of(name, {"to_q.", "to_v.", "add_k_proj."})) return type;
        return is_of(name, {"to_k.", "proj_mlp.", "add_q_proj.", "add_v_proj."}) ? other
                                                                                 : Type::kBfloat16;
      });
      const auto out = converted(tensors);
      for (const auto& [name, tensor] : tensors) {
        const auto what = text_of(name, " ", int(type), " with ", int(other));
        ASSERT_NE(out.find(name), nullptr) << what;
        const auto written = out.find(name)->view(), want = tensor.numbers;
        EXPECT_EQ(written.scalar_type(), dtype_written(tensor.type)) << what;
        EXPECT_TRUE(
            at::equal(written.to(at::kFloat), want.to(dtype_written(tensor.type)).to(at::kFloat)))
            << what;
      }
    }
}

TEST_F(JoinedNumbers, AreWrittenInOneTensorInADtypeThatHoldsAll) {
  const auto tensors = file_with([&](const std::string& name) {
    return is_of(name, {"to_q."}) ? Type::kFloat16 : Type::kBfloat16;
  });
  const auto out = converted(tensors, ConvertOptions::Form::kSingleFile);
  std::vector<Tensor> parts;
  for (const auto* const part : {"q", "k", "v"})
    parts.push_back(tensors.at(text_of("transformer_blocks.0.attn.to_", part, ".weight")).numbers);
  const auto joined = out.find("double_blocks.0.img_attn.qkv.weight")->view();
  EXPECT_EQ(joined.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(joined, at::cat(parts)));
  EXPECT_EQ(out.find("double_blocks.0.txt_attn.qkv.weight")->dtype(), at::kBFloat16);
}

// Where most numbers are of float16, what codes stand for may still exceed it.
TEST_F(JoinedNumbers, OfCodesAreNotRoundedToFloat16) {
  const std::string coded = "transformer_blocks.0.ff.net.2.weight";
  auto tensors = file_with([](const std::string&) { return Type::kFloat16; });
  tensors[coded] = in_blocks(tensors[coded].numbers.sizes(), 1500);
  ASSERT_GT(tensors[coded].numbers.max().item<float>(), 65504);
  const auto written = converted(tensors).find(coded)->view();
  EXPECT_EQ(written.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(written, tensors[coded].numbers.to(at::kBFloat16)));
}

// ------------------------------------------------------------------------- odd files

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
