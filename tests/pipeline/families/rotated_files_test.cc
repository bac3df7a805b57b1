// Transformers whose files have int8 codes of rotated numbers (ConvRot): they multiply as int8 in
// every layout and however they are kept, and stand for the numbers that they decode to.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "comm/thread.h"
#include "message_of.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/engine/engine.h"
#include "pipeline/files/found_files.h"
#include "pipeline/files/part_tensors.h"
#include "pipeline/planner/costs/memory.h"
#include "pipeline/planner/slower_codes.h"
#include "pipeline/planner/stages.h"
#include "temporary_folder.h"
#include "weights/codes/int8.h"
#include "weights/files/safetensors_writer.h"
#include "weights/sources/row_ranges.h"

namespace braid::rotated_files_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kParity = fs::path(BRAID_SOURCE_DIR) / "tests/data/parity";
const fs::path kDemo = fs::path(BRAID_SOURCE_DIR) / "models/demo";

// The limit of int8-dynamic's velocity (docs/numerics.md, quantize_test.cc).
constexpr double kDynamic = 0.04;

// The equation's matrix is a product of 4 x 4 matrices of halves, negative where row and column are
// opposite.
Tensor rotated_by_equation(const Tensor& x, std::int64_t together) {
  const auto four = 0.5 - at::eye(4, at::kDouble).flip(1);
  auto matrix = at::ones({1, 1}, at::kDouble);
  for (std::int64_t size = 1; size < together; size *= 4) matrix = at::kron(matrix, four);
  return x.to(at::kDouble).reshape({-1, together}).mm(matrix).view(x.sizes()).to(at::kFloat);
}

Tensor bytes_of(const std::string& text) {
  return at::from_blob(const_cast<char*>(text.data()), {std::int64_t(text.size())}, at::kByte)
      .clone();
}

using Tensors = std::map<std::string, Tensor>;

// The file's matrices in ComfyUI's ConvRot, of so many neighbours; and as the numbers that these
// codes stand for.
struct Written {
  Tensors codes, numbers;
};
Written in_convrot(const fs::path& file, std::int64_t together) {
  Written written;
  const auto mark =
      text_of(R"({"format":"int8_tensorwise","convrot":true,"convrot_groupsize":)", together, "}");
  const auto checkpoint = Checkpoint::open_file(file);
  for (const auto& [name, stored] : checkpoint.tensors()) {
    const auto x = stored.view().to(at::kFloat);
    constexpr std::string_view kWeight = ".weight";
    if (x.dim() != 2 || x.size(1) % together != 0) {
      written.codes[name] = written.numbers[name] = x;
      continue;
    }
    const auto made = quantize_rows(rotated_by_equation(x, together), Quantize::kInt8);
    const auto base = name.substr(0, name.size() - kWeight.size());
    written.codes[name] = made.values_NC;
    written.codes[base + ".weight_scale"] = made.scales_N1;
    written.codes[base + ".comfy_quant"] = bytes_of(mark);
    written.numbers[name] = rotated_by_equation(made.values_NC * made.scales_N1, together);
  }
  return written;
}

Recording run(PipelineOptions options, Dtype dtype = Dtype::kFloat32) {
  options.dtype = dtype;
  options.threads = 2;
  const Engine engine(options, {});
  return engine
      .generate({.prompts = {"a red circle on a blue background"},
                 .width = 112,
                 .height = 80,
                 .steps = 1,
                 .max_sequence_length = 16},
                {}, {.record = RecordTensors::kYes})
      .facts.recording;
}

Tensor velocity(const PipelineOptions& options, Dtype dtype = Dtype::kFloat32) {
  return run(options, dtype).at("velocity_first");
}

double relative_l2(const Tensor& got, const Tensor& want) {
  return ((got - want).norm() / want.norm()).item<double>();
}

double largest_error(const Tensor& got, const Tensor& want) {
  return ((got - want).abs().max() / want.abs().max()).item<double>();
}

// The bundled model, 192 wide: groups of 64 divide a third of that, not a half.
class RotatedFiles : public testing::Test {
 protected:
  static constexpr std::int64_t kTogether = 64;
  // Rotating by the equation, in float64, takes seconds, so it is done once for all tests.
  static void SetUpTestSuite() {
    files_ = std::make_unique<Files>();
    const auto written =
        in_convrot(kDemo / "transformer/diffusion_pytorch_model.safetensors", kTogether);
    for (const auto& [folder, tensors] :
         {std::pair(files_->coded, &written.codes), {files_->numbers, &written.numbers}}) {
      fs::copy(kDemo, folder, fs::copy_options::recursive);
      write_file(folder / "transformer/diffusion_pytorch_model.safetensors",
                 write_safetensors(*tensors));
    }
  }
  static void TearDownTestSuite() { files_.reset(); }
  PipelineOptions coded(const Layout& layout = {}, const Memory& memory = {}) const {
    return {.model = coded_, .layout = layout, .memory = memory};
  }
  PipelineOptions numbers(const Layout& layout = {}) const {
    return {.model = numbers_, .layout = layout};
  }
  static std::vector<Layout> layouts() {
    return {Layout{.tp = 2}, Layout{.tp = 3, .modulation = SharedModulation::kNo},
            Layout{.ring = 2}, Layout{.tp = 2, .ulysses = 2}};
  }

  struct Files {
    TemporaryFolder folder;
    fs::path coded = folder / "coded", numbers = folder / "numbers";
  };
  static inline std::unique_ptr<Files> files_;
  const TemporaryFolder folder_;
  const fs::path coded_ = files_->coded, numbers_ = files_->numbers;
};

TEST_F(RotatedFiles, MultiplyAsInt8InEveryLayout) {
  const auto exact = velocity(numbers());
  const auto one = velocity(coded());
  const auto error = relative_l2(one, exact);
  EXPECT_LT(error, kDynamic);
  EXPECT_GT(error, 1e-4) << "tokens were not quantized";
  RecordProperty("error", std::to_string(error));
  EXPECT_TRUE(at::equal(velocity(coded({}, {.quantize = Quantize::kInt8Dynamic})), one));
  for (const auto& layout : layouts())
    EXPECT_LT(relative_l2(velocity(coded(layout)), exact), kDynamic);
  EXPECT_LT(relative_l2(velocity(coded(), Dtype::kBfloat16).to(at::kFloat), exact), 1.5 * kDynamic);
}

// What rotations are for: tokens lose less in 8 bits than beside plain codes.
TEST_F(RotatedFiles, AreNotLessExactThanInt8Dynamic) {
  const auto exact = velocity(PipelineOptions{.model = kDemo});
  const auto plain =
      velocity(PipelineOptions{.model = kDemo, .memory = {.quantize = Quantize::kInt8Dynamic}});
  EXPECT_LT(relative_l2(velocity(coded()), exact), 1.2 * relative_l2(plain, exact));
}

using SlowRotatedFiles = RotatedFiles;

TEST_F(SlowRotatedFiles, StandForNumbersWhereInt8IsAskedFor) {
  const Memory as_numbers{.quantize = Quantize::kInt8};
  const auto exact = velocity(numbers());
  EXPECT_LT(largest_error(velocity(coded({}, as_numbers)), exact), 1e-5);
  for (const auto& layout : layouts())
    EXPECT_LT(largest_error(velocity(coded(layout, as_numbers)), exact), 2e-5);
}

TEST_F(SlowRotatedFiles, ComputeTheSamePaged) {
  for (const auto& layout : {Layout{}, Layout{.tp = 2}}) {
    const auto want = velocity(coded(layout));
    for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kSequential}) {
      Memory paged;
      paged.offload.transformer = mode;
      EXPECT_TRUE(at::equal(velocity(coded(layout, paged)), want)) << int(mode);
      paged.offload.folder = folder_ / text_of("pages", layout.tp, int(mode));
      EXPECT_TRUE(at::equal(velocity(coded(layout, paged)), want)) << int(mode) << " on a disk";
    }
  }
}

TEST_F(SlowRotatedFiles, ConvertToTheirNumbers) {
  const auto out = folder_ / "converted";
  convert({.model = coded_, .out = out, .dtype = Dtype::kFloat32});
  EXPECT_LT(largest_error(velocity(PipelineOptions{.model = out}), velocity(numbers())), 1e-5);
}

// The bytes of a rank's matrices and vectors, as they are loaded.
std::vector<std::int64_t> bytes_loaded(const PipelineOptions& options, int ranks) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks));
  run_ranks({.size = ranks}, [&](const Group& group) {
    const auto files = find_model(options).files;
    const auto family = open_family(files);
    const auto& part = family->part(Part::Role::kDenoiser);
    LoadOptions load{.dtype = at::kBFloat16, .stored_codes = StoredCodes::kKept};
    load.tensor_parallel = group;
    std::vector<SurveyedTensor> asked;
    part.make(Weights(tensors_of_part(part, files), {}).surveyed(asked));
    const Weights w(tensors_of_part(part, files), load, part.sharding(SharedModulation::kYes));
    for (const auto& a : asked) {
      const auto matrix = a.is_matrix()
                              ? (w / a.layer).matrix(a.name, a.shape)
                              : Matrix{.values_NC = (w / a.layer).tensor(a.name, a.shape)};
      for_each_tensor(matrix, [&](const Tensor& tensor) {
        bytes[std::size_t(group.rank())] += std::int64_t(tensor.nbytes());
      });
    }
    w.finish();
  });
  return bytes;
}

TEST_F(RotatedFiles, ArePlannedAsTheyAreKept) {
  auto options = coded();
  options.dtype = Dtype::kBfloat16;
  const auto shape = whole_transformer(open_family(find_model(options).files)->shape());
  for (const int tp : {1, 2, 3}) {
    const auto loaded = bytes_loaded(options, tp);
    const auto job = job_of(deploy(options), {});
    for (int rank = 0; rank < tp; ++rank)
      EXPECT_EQ(predict_bytes(job, {.tp = tp}, rank, shape).transformer, loaded[std::size_t(rank)])
          << "rank " << rank << " of " << tp;
  }
}

// A sentence only where codes are widened: not on devices that multiply them.
TEST_F(RotatedFiles, AreSaidToBeSlowerWhereTheyAreWidened) {
  auto options = coded();
  options.dtype = Dtype::kBfloat16;
  const auto slower = [&](Quantize form, const CodesMultiplied& by) {
    options.memory.quantize = form;
    return why_codes_are_slower(job_of(deploy(options), {}), by);
  };
  const CodesMultiplied with{.device = "a card"}, without{.device = "a card", .int8 = false};
  EXPECT_FALSE(slower(Quantize::kNone, with));
  EXPECT_THAT(slower(Quantize::kNone, without).value_or(""),
              HasSubstr("int8 (ConvRot), are widened to bfloat16 before they multiply on a card"));
  EXPECT_THAT(slower(Quantize::kInt8, with).value_or(""),
              HasSubstr("as their file has them, the codes multiply"));
  EXPECT_FALSE(slower(Quantize::kInt8, {.device = "cpu", .widens_numbers_too = true}));
  options.memory.offload.transformer = OffloadMode::kBlock;
  EXPECT_FALSE(slower(Quantize::kNone, without)) << "fewer bytes are copied";
}

// ------------------------------------------------------------------------- adapters

class AdaptedRotatedFiles : public testing::Test {
 protected:
  AdaptedRotatedFiles() {
    const auto written = in_convrot(kModel / "transformer/diffusion_pytorch_model.safetensors", 16);
    write_file(folder_ / "coded.safetensors", write_safetensors(written.codes));
    write_file(folder_ / "numbers.safetensors", write_safetensors(written.numbers));
  }
  PipelineOptions options(const char* file, AdapterMode mode = AdapterMode::kAuto) const {
    return {.model = folder_ / file,
            .components = kModel,
            .adapters = {{.file = kParity / "adapters/flux/comfyui.safetensors", .scale = 0.25}},
            .adapter_mode = mode};
  }

  const fs::path kModel = kParity / "basic/model";
  const TemporaryFolder folder_;
};

using SlowAdaptedRotatedFiles = AdaptedRotatedFiles;

TEST_F(SlowAdaptedRotatedFiles, HaveAdaptersBesideThem) {
  const auto fused = velocity(options("numbers.safetensors", AdapterMode::kFused));
  auto beside = options("coded.safetensors");
  auto alone = beside;
  alone.adapters.clear();
  EXPECT_GT(largest_error(velocity(alone), fused), 0.2);
  for (const auto form : {Quantize::kNone, Quantize::kInt8Dynamic})
    for (const int tp : {1, 2}) {
      beside.memory.quantize = form;
      beside.layout.tp = tp;
      EXPECT_LT(largest_error(velocity(beside), fused), 0.06) << int(form) << " " << tp;
    }
  beside.memory.quantize = Quantize::kInt8;
  EXPECT_LT(largest_error(velocity(beside), fused), 2e-5);
}

// The others stay codes.
TEST_F(AdaptedRotatedFiles, AreNumbersWhereAdaptersAreFused) {
  EXPECT_LT(largest_error(velocity(options("coded.safetensors", AdapterMode::kFused)),
                          velocity(options("numbers.safetensors", AdapterMode::kFused))),
            0.06);
  const auto bytes = [&](AdapterMode mode) {
    auto asked = options("coded.safetensors", mode);
    asked.dtype = Dtype::kBfloat16;
    return predict_bytes(job_of(deploy(asked), {}), {}, 0,
                         whole_transformer(open_family(find_model(asked).files)->shape()))
        .transformer;
  };
  EXPECT_GT(bytes(AdapterMode::kFused), bytes(AdapterMode::kAuto));
}

// ------------------------------------------------------------------------- what is refused

TEST(RotatedMarks, ThatSuitNoRowAreRefused) {
  const TemporaryFolder folder;
  const auto refusal = [&](const char* group) {
    const auto mark =
        text_of(R"({"format":"int8_tensorwise","convrot":true,"convrot_groupsize":)", group, "}");
    write_file(folder / "m.safetensors",
               write_safetensors({{"a.weight", at::zeros({4, 48}, at::kChar)},
                                  {"a.weight_scale", at::ones({4, 1})},
                                  {"a.comfy_quant", bytes_of(mark)}}));
    return message_of([&] { (void)Checkpoint::open_file(folder / "m.safetensors"); });
  };
  EXPECT_THAT(refusal("64"), HasSubstr("rotates 64 neighbours together, but rows of 48 numbers"));
  EXPECT_THAT(refusal("8"), HasSubstr("should be a power of 4, it is 8"));
  EXPECT_THAT(refusal("2"), HasSubstr("'convrot_groupsize'"));
  EXPECT_THAT(refusal("0"), HasSubstr("'convrot_groupsize'"));
  EXPECT_THAT(refusal("-16"), HasSubstr("'convrot_groupsize'"));
  EXPECT_THAT(refusal("4194304"), HasSubstr("'convrot_groupsize'"));
  EXPECT_THAT(refusal("16.5"), HasSubstr("'convrot_groupsize'"));
}

}  // namespace braid::rotated_files_test
