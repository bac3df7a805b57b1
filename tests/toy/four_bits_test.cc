// A matrix of six tensors, with a low-rank branch of the checkpoint's own, wherever weights go.
// What it stands for is written here in float64; a model of those numbers is the reference.
#include "four_bits.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/print/info/model_info.h"
#include "base/error.h"
#include "comm/thread.h"
#include "made_toy.h"
#include "message_of.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/engine/engine.h"
#include "pipeline/files/found_files.h"
#include "pipeline/files/part_tensors.h"
#include "pipeline/planner/costs/held.h"
#include "pipeline/planner/costs/memory.h"
#include "pipeline/planner/planner.h"
#include "pipeline/proofs/verify.h"
#include "weights/codes/int8.h"
#include "weights/sources/identity.h"

namespace braid::toy::four_bits_test {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Tensors = std::map<std::string, Tensor>;

constexpr std::int64_t kGroup = 16, kRank = 3;
const char* const kNames[] = {"weight_4bit", "weight_group_scales", "weight_zeros",
                              "smoothing",   "low_rank_down",       "low_rank_up"};

// A layer's six tensors of about unit variance per output.
Tensors packed(std::int64_t rows, std::int64_t columns) {
  const auto groups = columns / kGroup;
  const double size = 1 / std::sqrt(double(columns));
  return {{"weight_4bit", at::randint(0, 256, {rows, columns / 2}, at::kByte)},
          {"weight_group_scales", (at::rand({rows, groups}) + 0.5) * size / 4},
          {"weight_zeros", at::randint(5, 11, {rows, groups}, at::kByte)},
          {"smoothing", at::rand({columns}) + 0.5},
          {"low_rank_down", at::randn({kRank, columns}) * size},
          {"low_rank_up", at::randn({rows, kRank})}};
}

// The definition, in float64.
Tensor numbers(const Tensors& layer) {
  const auto of = [&](const char* name) { return layer.at(name).to(at::kDouble); };
  const auto bytes = layer.at("weight_4bit").to(at::kLong);
  const auto rows = bytes.size(0), columns = 2 * bytes.size(1);
  auto w = at::empty({rows, columns}, at::kDouble);
  for (std::int64_t c = 0; c < columns; ++c) {
    const auto byte = bytes.select(1, c / 2);
    const auto code = c % 2 == 0 ? byte.remainder(16) : byte.div(16, "floor");
    const auto zero = of("weight_zeros").select(1, c / kGroup);
    const auto scale = of("weight_group_scales").select(1, c / kGroup);
    w.select(1, c).copy_((code.to(at::kDouble) - zero) * scale);
  }
  return (w + of("low_rank_up").mm(of("low_rank_down"))) / of("smoothing");
}

bool is_packed_layer(const std::string& name) {
  return name.starts_with("blocks.") && name.ends_with(".weight") &&
         name.find("norm") == name.npos && name.find("mod") == name.npos;
}

struct Models {
  Tensors packed_ones, of_numbers;  // tensors of the transformer
};

const Models& models() {
  static const Models made = [] {
    Models m;
    for (const auto& [name, tensor] : made_tensors<Toy>(ToyConfig())) {
      if (!is_packed_layer(name)) {
        m.packed_ones[name] = m.of_numbers[name] = tensor;
        continue;
      }
      const auto layer = packed(tensor.size(0), tensor.size(1));
      const auto base = name.substr(0, name.size() - std::string("weight").size());
      for (const auto& [part, values] : layer) m.packed_ones[base + part] = values;
      m.of_numbers[name] = numbers(layer).to(at::kFloat);
    }
    return m;
  }();
  return made;
}

class FourBits : public testing::Test {
 protected:
  FourBits() {
    put(packed_, models().packed_ones);
    put(numbers_, models().of_numbers);
  }
  static fs::path file(const MadeToy& toy) {
    return toy.model() / "transformer/diffusion_pytorch_model.safetensors";
  }
  static void put(const MadeToy& toy, const Tensors& tensors) {
    write_file(file(toy), write_safetensors(tensors));
  }
  static PipelineOptions options(const MadeToy& toy, const Memory& memory = {}) {
    return {.model = toy.model(), .dtype = Dtype::kFloat32, .memory = memory};
  }
  static Tensor velocity(const PipelineOptions& options) {
    const Request request{.prompts = {"a blue star"}, .steps = 1, .seed = 5};
    const auto drawn = Engine(options, {}).generate(request, {}, {.record = RecordTensors::kYes});
    return drawn.facts.recording.at("velocity_first");
  }
  static double error(const Tensor& got, const Tensor& want) {
    return ((got - want).norm() / want.norm()).item<double>();
  }
  // A LoRA for every packed layer.
  fs::path lora() const {
    Tensors tensors;
    for (const auto& [name, tensor] : models().of_numbers)
      if (is_packed_layer(name)) {
        const auto layer = "transformer." + name.substr(0, name.size() - 7);
        tensors[layer + ".lora_A.weight"] = at::randn({2, tensor.size(1)}) * 0.1;
        tensors[layer + ".lora_B.weight"] = at::randn({tensor.size(0), 2});
      }
    const auto path = folder_ / "lora.safetensors";
    write_file(path, write_safetensors(tensors));
    return path;
  }

  MadeToy packed_, numbers_;
  TemporaryFolder folder_;
};

constexpr double kRounding = 2e-5;  // of float32 through four blocks

TEST_F(FourBits, AreTheNumbersOfTheirDefinition) {
  const auto want = velocity(options(numbers_));
  EXPECT_LT(error(velocity(options(packed_)), want), kRounding);
  // each of the six counts
  for (const auto* const name : kNames) {
    auto tensors = models().packed_ones;
    auto& tensor = tensors.at(std::string("blocks.2.up.") + name);
    tensor = tensor.flip(0).contiguous();
    const MadeToy other;
    put(other, tensors);
    EXPECT_GT(error(velocity(options(other)), want), 100 * kRounding) << name;
  }
}

TEST_F(FourBits, AreProvenUnderEveryLayout) {
  for (const Layout& layout : {Layout{.tp = 2}, Layout{.ring = 2}, Layout{.ulysses = 2},
                               Layout{.pp = 2}, Layout{.tp = 2, .ulysses = 2}, Layout{.cfg = 2}}) {
    auto o = options(packed_);
    o.layout = layout;
    const auto verdict = verify(deploy(o));
    EXPECT_FALSE(verdict.blocks.empty());
    EXPECT_EQ(verdict.first_divergent(), nullptr);
  }
}

TEST_F(FourBits, KeepTheirBitsWhereverTheyAre) {
  const auto want = velocity(options(packed_));
  for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kLeaf})
    for (const auto& folder : {fs::path(), folder_ / "pages"})
      EXPECT_TRUE(at::equal(
          velocity(options(packed_, {.offload = {.transformer = mode, .folder = folder}})), want))
          << int(mode) << folder;
}

TEST_F(FourBits, AreFoundAgainInPagesOnDiskUnlessAByteChanges) {
  const auto count = [&] {
    const auto folder = folder_ / "pages";
    (void)velocity(
        options(packed_, {.offload = {.transformer = OffloadMode::kModel, .folder = folder}}));
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
  };
  const auto first = count();
  EXPECT_EQ(count(), first);
  for (const auto* const name : kNames) {
    auto tensors = models().packed_ones;
    auto& tensor = tensors.at(std::string("blocks.3.down.") + name);
    tensor = tensor.clone();
    auto bytes = tensor.view({-1}).view(at::kByte);
    bytes[bytes.numel() - 1].bitwise_xor_(1);
    put(packed_, tensors);
    const auto before = count();
    put(packed_, models().packed_ones);
    EXPECT_EQ(before, first + 1) << name;
    fs::remove_all(folder_ / "pages");
    EXPECT_EQ(count(), first);
  }
}

// The bytes of all tensors, as ranks load them.
std::vector<std::int64_t> bytes_loaded(const PipelineOptions& options, int ranks) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks));
  const auto files = find_model(options).files;
  const auto family = open_family(files);
  const auto& part = family->part(Part::Role::kDenoiser);
  std::vector<SurveyedTensor> asked;
  part.make(Weights(tensors_of_part(part, files), {}).surveyed(asked));
  run_ranks({.size = ranks}, [&](const Group& group) {
    const Weights w(
        tensors_of_part(part, files),
        {.dtype = at::kFloat, .tensor_parallel = group, .stored_codes = StoredCodes::kKept},
        part.sharding(SharedModulation::kYes));
    auto& sum = bytes[std::size_t(group.rank())];
    for (const auto& a : asked) {
      const auto layer = w / a.layer;
      const auto matrix = a.is_matrix() ? layer.matrix(a.name, a.shape)
                                        : Matrix{.values_NC = layer.tensor(a.name, a.shape)};
      for_each_tensor(matrix, [&](const Tensor& x) { sum += std::int64_t(x.nbytes()); });
    }
    w.finish();
  });
  return bytes;
}

// Two ranks share 48 columns, three groups of 16: each keeps the middle one.
TEST_F(FourBits, AreCountedByPlans) {
  const auto job = job_of(deploy(options(packed_)), {});
  const auto& tensors = job.tensors->of(Part::Role::kDenoiser);
  for (const int ranks : {1, 2}) {
    const auto loaded = bytes_loaded(options(packed_), ranks);
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_EQ(pages_of(tensors, {.tp = ranks, .tp_rank = rank}, {}).outside,
                loaded[std::size_t(rank)])
          << rank << " of " << ranks;
  }
  const auto whole = bytes_loaded(options(packed_), 1).front();
  EXPECT_LT(whole, bytes_loaded(options(numbers_), 1).front());
}

TEST_F(FourBits, AreCutToTheirRanksRowsAndColumns) {
  const auto checkpoint = Checkpoint::open_file(file(packed_));
  const auto want = models().of_numbers.at("blocks.1.proj.weight");
  const auto rows = want.size(0), columns = want.size(1);
  for (const auto coded : {StoredCodes::kKept, StoredCodes::kWidened})
    for (const auto& sharding :
         {column_parallel(), column_parallel({16, 32}), row_parallel(), row_parallel({16, 32})})
      run_ranks({.size = 2}, [&](const Group& ranks) {
        const Weights w(checkpoint, {}, {.tensor_parallel = ranks, .stored_codes = coded},
                        {{"blocks.1.proj", sharding}});
        const auto matrix = (w / "blocks.1.proj").matrix("weight", {rows, columns});
        EXPECT_EQ(matrix.is_packed(), coded == StoredCodes::kKept);
        const std::int64_t dim = sharding.split == Split::kColumns ? 0 : 1;
        std::vector<Tensor> mine;
        for (const auto& run : shares_of(sharding, want.size(dim), ranks.rank(), 2, "proj"))
          mine.push_back(want.narrow(dim, run.begin, run.count));
        EXPECT_LT((dequantize(matrix, at::kFloat) - at::cat(mine, dim)).abs().max().item<double>(),
                  2e-6);
      });
}

// Neighbours whose rows are joined have smoothing of their own: the whole is decoded.
TEST_F(FourBits, AreDecodedWhereTheyAreJoined) {
  const auto q = packed(8, 32), k = packed(4, 32);
  Tensors tensors;
  for (const auto& [name, tensor] : q) tensors["q." + name] = tensor;
  for (const auto& [name, tensor] : k) tensors["k." + name] = tensor;
  write_file(folder_ / "m.safetensors", write_safetensors(tensors));
  const Weights w(Checkpoint::open_file(folder_ / "m.safetensors"),
                  {.spellings = {{"qk", {"q", "k"}}}}, {.stored_codes = StoredCodes::kKept});
  const auto got = (w / "qk").matrix("weight", {12, 32});
  w.finish();
  EXPECT_FALSE(got.is_packed());
  EXPECT_LT((got.values_NC - at::cat({numbers(q), numbers(k)})).abs().max().item<double>(), 2e-6);
}

TEST_F(FourBits, AreQuantizedFromTheirNumbers) {
  const Memory int8{.quantize = Quantize::kInt8};
  // Multiples of one scale lie halfway between codes often, and rounding decides there.
  EXPECT_LT(error(velocity(options(packed_, int8)), velocity(options(numbers_, int8))), 5e-3);
}

// Fused, the whole is numbers; else the products are added to the checkpoint's own.
TEST_F(FourBits, AreAdaptedByLoras) {
  const auto path = lora();
  const auto with = [&](const MadeToy& toy, AdapterMode mode) {
    auto o = options(toy);
    o.adapters = {{.file = path, .scale = 0.7}};
    o.adapter_mode = mode;
    return velocity(o);
  };
  const auto want = with(numbers_, AdapterMode::kFused);
  EXPECT_GT(error(want, velocity(options(numbers_))), 0.05);
  for (const auto mode : {AdapterMode::kAuto, AdapterMode::kFused, AdapterMode::kUnmerged})
    EXPECT_LT(error(with(packed_, mode), want), kRounding) << int(mode);
  auto tp = options(packed_);
  tp.adapters = {{.file = path, .scale = 0.7}};
  tp.layout.tp = 2;
  EXPECT_LT(error(velocity(tp), want), kRounding);
}

TEST_F(FourBits, AreConvertedToTheirNumbers) {
  const auto out = folder_ / "converted";
  convert({.model = packed_.model(), .out = out, .dtype = Dtype::kFloat32});
  const auto written =
      Checkpoint::open_file(out / "transformer/diffusion_pytorch_model.safetensors");
  for (const auto& [name, want] : models().of_numbers) {
    const auto* const stored = written.find(name);
    ASSERT_TRUE(stored) << name;
    EXPECT_LT((stored->view() - want).abs().max().item<double>(), 2e-6) << name;
  }
}

TEST_F(FourBits, AreDescribed) {
  const auto packed_info = model_info(deploy(options(packed_)))["parts"]["transformer"];
  const auto of_numbers = model_info(deploy(options(numbers_)))["parts"]["transformer"];
  EXPECT_EQ(packed_info["parameters"], of_numbers["parameters"]);
  EXPECT_EQ(packed_info["types"]["U8"]["tensors"], 4 * 4 * 2);  // values and zeros
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : models().packed_ones) bytes += std::int64_t(tensor.nbytes());
  EXPECT_EQ(packed_info["bytes"], bytes);
}

TEST_F(FourBits, AreRefusedWhereATensorIsMissingOrDoesNotFit) {
  const auto complaint = [&](const char* name, const std::optional<Tensor>& tensor) {
    auto tensors = models().packed_ones;
    const auto path = std::string("blocks.0.qkv.") + name;
    tensors.erase(path);
    if (tensor) tensors[path] = *tensor;
    put(packed_, tensors);
    return message_of([&] { (void)Engine(options(packed_), {}); });
  };
  EXPECT_THAT(complaint("smoothing", {}), HasSubstr("'blocks.0.qkv.smoothing' is missing"));
  EXPECT_THAT(
      complaint("low_rank_down", at::ones({kRank, 47})),
      HasSubstr("'blocks.0.qkv.low_rank_down' should have the shape [3, 48], it has [3, 47]"));
  EXPECT_THAT(complaint("low_rank_up", at::ones({80, kRank + 1})),
              HasSubstr("should have the shape [80, 3], it has [80, 4]"));
  EXPECT_THAT(complaint("weight_group_scales", at::ones({80, 3}, at::kByte)),
              HasSubstr("should hold floating-point numbers, its dtype is U8"));
  EXPECT_THAT(complaint("weight_4bit", at::ones({80, 20}, at::kByte)),
              HasSubstr("should have whole groups of 16 columns, it has 40"));
}

}  // namespace braid::toy::four_bits_test
