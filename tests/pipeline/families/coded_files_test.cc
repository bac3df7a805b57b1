// Transformers and text encoders in blocks and in float8 (tools/parity/dump_blocks.py) compute the
// same as their decoded numbers, in every layout and however they are kept.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "message_of.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/engine/engine.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"
#include "weights/sources/row_ranges.h"

namespace braid::coded_files_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kParity = fs::path(BRAID_SOURCE_DIR) / "tests/data/parity";
const fs::path kModel = kParity / "basic/model";

// Writes the same tensors as numbers.
void write_numbers(const fs::path& from, const fs::path& to) {
  const auto file = Checkpoint::open_file(from);
  std::map<std::string, Tensor> numbers;
  for (const auto& [name, stored] : file.tensors())
    numbers[name] = numbers_of(all_rows(std::make_shared<const StoredTensor>(stored)));
  write_file(to, write_safetensors(numbers));
}

Recording run(PipelineOptions options, Dtype dtype = Dtype::kFloat32) {
  options.dtype = dtype;
  options.threads = 2;
  const Engine engine(options, {});
  return engine
      .generate({.prompts = {"a red circle on a blue background"},
                 .width = 64,
                 .height = 48,
                 .steps = 2,
                 .max_sequence_length = 16},
                {}, {.record = RecordTensors::kYes})
      .facts.recording;
}

void expect_same(const Recording& got, const Recording& want, const std::string& what) {
  for (const auto* name : {"prompt_embeds", "velocity_first", "latents_final"})
    EXPECT_TRUE(at::equal(got.at(name), want.at(name))) << what << ": " << name;
}

class CodedFiles : public testing::TestWithParam<std::string> {
 protected:
  CodedFiles() { write_numbers(file_, folder_ / "numbers.safetensors"); }
  PipelineOptions coded() const { return {.model = file_, .components = kModel}; }
  PipelineOptions numbers() const {
    return {.model = folder_ / "numbers.safetensors", .components = kModel};
  }
  void compare(const std::string& what, const Layout& layout, const Memory& memory = {},
               Dtype dtype = Dtype::kFloat32) const {
    auto a = coded(), b = numbers();
    a.layout = b.layout = layout;
    a.memory = b.memory = memory;
    expect_same(run(a, dtype), run(b, dtype), what);
  }

  TemporaryFolder folder_;
  const fs::path file_ = kParity / "blocks" / GetParam();
};

TEST_P(CodedFiles, ComputeWhatTheirNumbersComputeInEveryLayout) {
  for (const auto dtype : {Dtype::kFloat32, Dtype::kBfloat16}) compare("one rank", {}, {}, dtype);
  compare("tensor parallel", {.tp = 2});
  compare("tensor parallel in bfloat16", {.tp = 2}, {}, Dtype::kBfloat16);
  compare("ring", {.ring = 2});
  compare("Ulysses", {.ulysses = 2});
  compare("pipeline parallelism", {.pp = 2});
}

class SlowCodedFiles : public CodedFiles {};

TEST_P(SlowCodedFiles, ComputeTheSameQuantizedAndPaged) {
  compare("int8", {}, {.quantize = Quantize::kInt8}, Dtype::kBfloat16);
  compare("shared int8", {.tp = 2}, {.quantize = Quantize::kInt8Dynamic});
  for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kSequential}) {
    Memory paged;
    paged.offload.transformer = mode;
    compare("offloaded", {}, paged);
    paged.offload.folder = folder_ / ("pages" + std::to_string(int(mode)));
    compare("on a disk, in shares", {.tp = 2}, paged);
  }
}

TEST_P(CodedFiles, ConvertToTheirNumbers) {
  for (const auto dtype : {Dtype::kAuto, Dtype::kFloat32}) {
    const auto out = folder_ / ("converted" + std::to_string(int(dtype)));
    convert({.model = file_, .components = kModel, .out = out, .dtype = dtype});
    const auto as = dtype == Dtype::kAuto ? Dtype::kBfloat16 : Dtype::kFloat32;
    expect_same(run({.model = out}, as), run(numbers(), as), "converted");
  }
}

const auto kStem = [](const auto& info) { return info.param.substr(0, info.param.find('.')); };
INSTANTIATE_TEST_SUITE_P(Files, CodedFiles, testing::Values("flux.gguf"), kStem);
INSTANTIATE_TEST_SUITE_P(Files, SlowCodedFiles,
                         testing::Values("flux.gguf", "flux_float8.safetensors"), kStem);
INSTANTIATE_TEST_SUITE_P(SlowFiles, CodedFiles, testing::Values("flux_float8.safetensors"), kStem);

TEST(CodedTextEncoders, AreReadUnderTheNamesOfLlamaCpp) {
  const TemporaryFolder folder;
  const auto model = folder / "model", t5 = model / "text_encoder_2";
  fs::copy(kModel, model, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  for (const auto* tokenizer : {"tokenizer", "tokenizer_2"}) {
    fs::remove(model / tokenizer);
    fs::create_directory_symlink(fs::canonical(kModel / tokenizer), model / tokenizer);
  }
  fs::remove(t5 / "model.safetensors");
  fs::copy_file(kParity / "blocks/t5.gguf", t5 / "model.gguf");
  const auto coded = run({.model = model});
  write_numbers(t5 / "model.gguf", t5 / "model.safetensors");
  expect_same(coded, run({.model = model}), "T5 in blocks");
}

TEST(CodedPlans, CountWhatStaysInBlocks) {
  const auto bytes_of = [](const fs::path& file) {
    return deploy(PipelineOptions{.model = file,
                                  .components = kModel,
                                  .memory = {.budget = {.device = 1 << 30}}})
        .memory_plan->device_peak;
  };
  const TemporaryFolder folder;
  write_numbers(kParity / "blocks/flux.gguf", folder / "numbers.safetensors");
  const auto saved =
      bytes_of(folder / "numbers.safetensors") - bytes_of(kParity / "blocks/flux.gguf");
  EXPECT_GT(saved, 0);
}

}  // namespace braid::coded_files_test
