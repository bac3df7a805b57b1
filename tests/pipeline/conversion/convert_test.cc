// Conversions: the result loads without being quantized again and computes the same bits.
#include "pipeline/conversion/convert.h"
#include "message_of.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "edit_json.h"
#include "pipeline/engine/engine.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"

namespace braid::convert_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Convert : public testing::Test {
 protected:
  // Not every CPU chooses the dtype of the stored and quantized models by default.
  static Recording run(PipelineOptions options) {
    options.dtype = Dtype::kBfloat16;
    const Engine engine(options, {});
    return engine
        .generate({.prompts = {"a red circle on a blue background"},
                   .width = 64,
                   .height = 48,
                   .steps = 1,
                   .max_sequence_length = 13},
                  {}, {.record = RecordTensors::kYes})
        .facts.recording;
  }
  static void expect_same(const Recording& got, const Recording& want) {
    for (const auto* name : {"prompt_embeds", "velocity_first", "latents_final"})
      EXPECT_TRUE(at::equal(got.at(name), want.at(name))) << name;
  }
  static std::string refusal(const ConvertOptions& options) {
    return message_of([&] { convert(options); });
  }

  const fs::path model_ = fs::path(BRAID_SOURCE_DIR) / "models/demo";
  const fs::path basic_ = fs::path(BRAID_SOURCE_DIR) / "tests/data/parity/basic";
  TemporaryFolder folder_;
};

using SlowConvert = Convert;

TEST_F(SlowConvert, QuantizedModelsComputeWhatQuantizingOnTheWayInComputes) {
  for (const auto form : {Quantize::kInt8, Quantize::kInt8V1, Quantize::kFloat8}) {
    const Memory memory{.quantize = form, .quantize_text = form, .keep_dense = {"img_in"}};
    const auto out = folder_ / std::to_string(int(form));
    convert({.model = model_, .out = out, .memory = memory});
    expect_same(run({.model = out}), run({.model = model_, .memory = memory}));
    const auto stored = Checkpoint::open(out / "transformer", "diffusion_pytorch_model");
    const auto codes = form == Quantize::kFloat8 ? ElementType::kFloat8E4M3 : ElementType::kInt8;
    EXPECT_EQ(stored.find("transformer_blocks.0.attn.to_q.weight")->entry.type, codes);
    EXPECT_NE(stored.find("x_embedder.weight")->entry.type, codes);
    EXPECT_FALSE(fs::exists(out.string() + ".partial"));
  }
}

TEST_F(SlowConvert, StoredCodesRunInEveryLayoutAndOffloaded) {
  const auto out = folder_ / "int8";
  const Memory memory{.quantize = Quantize::kInt8};
  convert({.model = model_, .out = out, .memory = memory});
  const PipelineOptions tp{.model = out, .layout = {.tp = 2}};
  expect_same(run(tp), run({.model = model_, .layout = {.tp = 2}, .memory = memory}));
  Memory offloaded;
  offloaded.offload.transformer = OffloadMode::kBlock;
  expect_same(run({.model = out, .memory = offloaded}), run({.model = out}));
}

TEST_F(Convert, SingleFilesBecomeDirectories) {
  const auto out = folder_ / "directory";
  convert(
      {.model = basic_ / "transformer.safetensors", .components = basic_ / "model", .out = out});
  expect_same(run({.model = out}), run({.model = basic_ / "model"}));
  const auto ours = Checkpoint::open(out / "transformer", "diffusion_pytorch_model");
  const auto theirs = Checkpoint::open(basic_ / "model/transformer", "diffusion_pytorch_model");
  EXPECT_EQ(ours.tensors().size(), theirs.tensors().size());
  for (const auto& [name, stored] : theirs.tensors()) {
    ASSERT_NE(ours.find(name), nullptr) << name;
    EXPECT_TRUE(at::equal(ours.find(name)->view(), stored.view())) << name;
  }
}

TEST_F(Convert, DirectoriesBecomeSingleFiles) {
  const auto out = folder_ / "flux.safetensors";
  convert({.model = basic_ / "model", .out = out, .form = ConvertOptions::Form::kSingleFile});
  const auto ours = Checkpoint::open_file(out);
  const auto theirs = Checkpoint::open_file(basic_ / "transformer.safetensors");
  EXPECT_EQ(ours.tensors().size(), theirs.tensors().size());
  const std::string prefix = "model.diffusion_model.";
  for (const auto& [stored_name, stored] : theirs.tensors()) {
    const auto name = stored_name.substr(prefix.size());
    ASSERT_NE(ours.find(name), nullptr) << name;
    EXPECT_TRUE(at::equal(ours.find(name)->view(), stored.view())) << name;
  }
}

TEST_F(Convert, DtypesChange) {
  const auto out = folder_ / "bfloat16";
  convert({.model = basic_ / "model", .out = out, .dtype = Dtype::kBfloat16});
  EXPECT_EQ(Checkpoint::open(out / "transformer", "diffusion_pytorch_model").dtype(),
            at::kBFloat16);
  EXPECT_EQ(Checkpoint::open(out / "text_encoder_2", "model").dtype(), at::kBFloat16);
}

// Names and shapes of a text encoder's tensors.
std::map<std::string, std::vector<std::int64_t>> text_tensors(const fs::path& model) {
  std::map<std::string, std::vector<std::int64_t>> shapes;
  const auto stored = Checkpoint::open(model / "text_encoder", "model");
  for (const auto& [name, tensor] : stored.tensors()) shapes[name] = tensor.entry.shape;
  return shapes;
}

// Otherwise transformers fills what config.json promises with random numbers.
TEST_F(SlowConvert, KeepsTheLayersOfLanguageModelsThatBraidDoesNotRun) {
  for (const std::string name : {"zimage-turbo", "klein", "flux2-dev", "joy", "krea2", "qwen21",
                                 "qwen-image", "qwen-image-edit"}) {
    const auto source = basic_.parent_path() / name / "model", out = folder_ / name;
    convert({.model = source, .out = out, .dtype = Dtype::kBfloat16});
    EXPECT_EQ(text_tensors(out), text_tensors(source)) << name;
    EXPECT_EQ(read_file(out / "text_encoder/config.json"),
              read_file(source / "text_encoder/config.json"));
    const auto stored = Checkpoint::open(out / "text_encoder", "model");
    for (const auto& [tensor, entry] : stored.tensors())
      EXPECT_EQ(entry.dtype(), at::kBFloat16) << tensor;
  }
}

// transformers would take plain numbers for codes.
TEST_F(Convert, SaysNothingOfCodesThatWereRead) {
  const auto source = folder_ / "source", out = folder_ / "out";
  fs::copy(model_, source, fs::copy_options::recursive);
  const std::string parts[] = {"transformer", "text_encoder_2"};
  for (const auto& part : parts) {
    edit_json(source / part / "config.json", [](Json& config) {
      config["quantization_config"] = {{"quant_method", "fp8"}, {"activation_scheme", "dynamic"}};
    });
  }
  convert({.model = source, .out = out, .dtype = Dtype::kBfloat16});
  for (const auto& part : parts)
    EXPECT_EQ(nlohmann::json::parse(read_file(out / part / "config.json")),
              nlohmann::json::parse(read_file(model_ / part / "config.json")));
}

// Such as the vocabulary's head and the vision tower, which no module of ours asks for.
TEST_F(Convert, KeepsWhatElseATextEncodersFilesHold) {
  const auto source = folder_ / "source";
  fs::copy(basic_.parent_path() / "zimage-turbo/model", source, fs::copy_options::recursive);
  const auto file = source / "text_encoder/model.safetensors";
  std::map<std::string, Tensor> tensors;
  {
    const auto checkpoint = Checkpoint::open_file(file);
    for (const auto& [name, stored] : checkpoint.tensors()) tensors[name] = stored.view().clone();
  }
  const auto head = at::randn({5, 3});
  tensors["lm_head.weight"] = head;
  write_file(file, write_safetensors(tensors));
  const auto converted = [&](const std::string& name, ConvertOptions options) {
    options.model = source;
    options.out = folder_ / name;
    convert(options);
    run({.model = options.out});
    return Checkpoint::open(options.out / "text_encoder", "model");
  };
  const auto whole = converted("whole", {.model = {}, .out = {}, .dtype = Dtype::kBfloat16});
  ASSERT_NE(whole.find("lm_head.weight"), nullptr);
  EXPECT_TRUE(at::equal(whole.find("lm_head.weight")->view(), head.to(at::kBFloat16)));
  const auto cut = converted(
      "cut", {.model = {}, .out = {}, .dtype = Dtype::kBfloat16, .only_used_layers = true});
  EXPECT_EQ(cut.find("lm_head.weight"), nullptr);
  EXPECT_LT(cut.tensors().size(), whole.tensors().size() - 1);
  const auto says = [&](const std::string& name, const std::string& text) {
    return read_file(folder_ / name).find(text) != std::string::npos;
  };
  EXPECT_TRUE(says("cut/text_encoder/config.json", "\"braid_layers\""));
  EXPECT_TRUE(says("cut/model_index.json", "\"braid\""));
  EXPECT_FALSE(says("whole/model_index.json", "\"braid\""));
  // what was cut stays cut, and is said again
  convert({.model = folder_ / "cut", .out = folder_ / "again", .dtype = Dtype::kFloat32});
  EXPECT_TRUE(says("again/model_index.json", "\"braid\""));
}

TEST_F(Convert, WarnsOfNumbersThatAreNotFinite) {
  const auto model = folder_ / "model";
  fs::copy(basic_ / "model", model, fs::copy_options::recursive);
  const auto file = model / "transformer/diffusion_pytorch_model.safetensors";
  std::map<std::string, Tensor> tensors;
  const auto checkpoint = Checkpoint::open_file(file);
  for (const auto& [name, stored] : checkpoint.tensors()) tensors[name] = stored.view().clone();
  tensors.at("proj_out.weight").view(-1)[3] = NAN;
  write_file(file, write_safetensors(tensors));
  for (const auto form : {Quantize::kNone, Quantize::kInt8}) {
    std::vector<std::string> warnings;
    Hooks hooks;
    hooks.warning = [&](const std::string& text) { warnings.push_back(text); };
    convert(
        {.model = model, .out = folder_ / std::to_string(int(form)), .memory = {.quantize = form}},
        hooks);
    EXPECT_THAT(warnings, testing::ElementsAre(testing::HasSubstr("proj_out.weight")));
    warnings.clear();
    convert({.model = basic_ / "model",
             .out = folder_ / ("good" + std::to_string(int(form))),
             .memory = {.quantize = form}},
            hooks);
    EXPECT_THAT(warnings, testing::IsEmpty());
  }
}

TEST_F(Convert, GoesOnWhereItWasStopped) {
  const auto out = folder_ / "out";
  const ConvertOptions options{
      .model = model_,
      .out = out,
      .memory = {.quantize = Quantize::kInt8, .quantize_text = Quantize::kInt8}};
  std::stop_source stop;
  const Hooks hooks{.progress = [&](const Progress&) { stop.request_stop(); },
                    .stop = stop.get_token()};
  EXPECT_THROW(convert(options, hooks), Cancelled);
  EXPECT_FALSE(fs::exists(out));
  const auto partial = fs::path(out.string() + ".partial");
  const auto written = partial / "transformer/diffusion_pytorch_model.safetensors";
  ASSERT_TRUE(fs::exists(written));
  const auto time = fs::last_write_time(written);
  convert(options);
  EXPECT_EQ(fs::last_write_time(out / "transformer/diffusion_pytorch_model.safetensors"), time);
  EXPECT_FALSE(fs::exists(partial));
  run({.model = out});
}

// Models on shared machines may only be read.
TEST_F(Convert, CopiesNoPermissionsOfFiles) {
  const auto source = folder_ / "source";
  fs::copy(model_, source, fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(source))
    if (entry.is_regular_file()) fs::permissions(entry.path(), fs::perms::owner_read);
  convert({.model = source, .out = folder_ / "out/."});
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "out"))
    EXPECT_NE(entry.status().permissions() & fs::perms::owner_write, fs::perms::none)
        << entry.path();
}

TEST_F(Convert, LeavesFoldersOfOthersAlone) {
  fs::create_directories(folder_ / "out.partial");
  write_file(folder_ / "out.partial/mine", "x");
  EXPECT_THAT(refusal({.model = model_, .out = folder_ / "out"}),
              HasSubstr("is not an interrupted conversion"));
  EXPECT_TRUE(fs::exists(folder_ / "out.partial/mine"));
  write_file(folder_ / "out.partial/conversion.json", R"({"rate": "EUR/USD"})");
  EXPECT_THAT(refusal({.model = model_, .out = folder_ / "out"}),
              HasSubstr("is not an interrupted conversion"));
  EXPECT_TRUE(fs::exists(folder_ / "out.partial/mine"));
}

// A hub's snapshot has links to the files, the model in one file too, and hidden folders.
TEST_F(Convert, TakesWhatTheIndexNamesAndFollowsLinks) {
  const auto hub = folder_ / "hub", out = folder_ / "out/";  // a folder's name may end in a slash
  fs::copy(model_, hub, fs::copy_options::recursive);
  fs::rename(hub / "vae", folder_ / "blobs");
  fs::create_directory_symlink(folder_ / "blobs", hub / "vae");
  for (const std::string ending : {"safetensors", "SFT", "gguf"})
    write_file(hub / ("flux1-dev." + ending), "much");
  fs::create_directories(hub / ".cache/huggingface");
  write_file(hub / "LICENSE.md", "text");
  convert({.model = hub, .out = out});
  EXPECT_TRUE(fs::exists(folder_ / "out/LICENSE.md"));
  for (const std::string ending : {"safetensors", "SFT", "gguf"})
    EXPECT_FALSE(fs::exists(folder_ / ("out/flux1-dev." + ending)));
  EXPECT_FALSE(fs::exists(folder_ / "out/.cache"));
  EXPECT_FALSE(fs::is_symlink(folder_ / "out/vae"));
  expect_same(run({.model = folder_ / "out"}), run({.model = model_}));
}

// What concerns text encoders has no effect on a file of the transformer.
TEST_F(Convert, TakesForASingleFileOnlyWhatChangesATransformer) {
  ConvertOptions options{.model = basic_ / "model",
                         .out = folder_ / "flux.gguf",
                         .form = ConvertOptions::Form::kSingleFile};
  EXPECT_THAT(refusal(options), HasSubstr("flux.gguf\" is named as a GGUF file"));
  options.out = folder_ / "folder/";
  EXPECT_THAT(refusal(options), HasSubstr("is the name of a folder"));
  options.out = folder_ / "flux.safetensors";
  auto others = options;
  others.memory.quantize_text = Quantize::kInt8;
  EXPECT_THAT(refusal(others), HasSubstr("`quantize_text` is for text encoders"));
  others = options;
  others.only_used_layers = true;
  EXPECT_THAT(refusal(others), HasSubstr("`only_used_layers` is for text encoders"));

  std::map<std::string, Tensor> tensors;
  for (const std::string module : {"lora_te1_text_model_encoder_layers_0_self_attn_k_proj",
                                   "lora_unet_double_blocks_0_img_attn_proj"}) {
    tensors[module + ".lora_down.weight"] = at::randn({2, 32});
    tensors[module + ".lora_up.weight"] = at::randn({32, 2});
  }
  write_file(folder_ / "both.safetensors", write_safetensors(tensors));
  options.adapters = {{.file = folder_ / "both.safetensors"}};
  std::vector<std::string> warnings;
  convert(options, {.warning = [&](const std::string& one) { warnings.push_back(one); }});
  EXPECT_TRUE(fs::exists(options.out));
  EXPECT_THAT(warnings, testing::ElementsAre(HasSubstr("the adapters change text_encoder, too")));
}

TEST_F(Convert, RefusesATruncatedModelAndMakesNothing) {
  const auto source = folder_ / "source";
  fs::copy(model_, source, fs::copy_options::recursive);
  const auto weights = source / "transformer/diffusion_pytorch_model.safetensors";
  fs::resize_file(weights, fs::file_size(weights) / 2);
  EXPECT_THAT(refusal({.model = source, .out = folder_ / "out"}), HasSubstr("diffusion_pytorch"));
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  EXPECT_FALSE(fs::exists(folder_ / "out.partial"));
}

TEST_F(Convert, SaysWhyAPlaceCannotBeWritten) {
  EXPECT_THAT(refusal({.model = model_, .out = folder_ / std::string(300, 'x')}),
              testing::EndsWith("cannot be written: File name too long"));
}

TEST_F(Convert, RefusesToWriteIntoThePartsOfTheModel) {
  const auto source = folder_ / "source";
  fs::copy(model_, source, fs::copy_options::recursive);
  fs::create_directory_symlink(source / "vae", folder_ / "link");
  for (const auto& out : {source / "vae/out", source / "vae/deep/out", folder_ / "link/out"})
    EXPECT_THAT(refusal({.model = source, .out = out}), HasSubstr("a part of the model"));
  EXPECT_FALSE(fs::exists(source / "vae/deep"));
  EXPECT_FALSE(fs::exists(source / "vae/out.partial"));
  convert({.model = source, .out = source / "out"});
  run({.model = source / "out"});
}

// A link inside a part leads to the place of the result.
TEST_F(Convert, DoesNotCopyAFolderIntoItself) {
  const auto source = folder_ / "source";
  fs::copy(model_, source, fs::copy_options::recursive);
  fs::create_directory_symlink(folder_.path(), source / "vae/all");
  EXPECT_THAT(refusal({.model = source, .out = folder_ / "out"}), HasSubstr("into itself"));
}

TEST_F(SlowConvert, TwoDoNotWorkOnOneFolderAtOnce) {
  const ConvertOptions options{.model = model_, .out = folder_ / "out"};
  auto other = options;
  other.memory.quantize = Quantize::kInt8;
  std::vector<std::string> refusals;
  convert(options, {.progress = [&](const Progress&) { refusals.push_back(refusal(other)); }});
  EXPECT_THAT(refusals, testing::Each(HasSubstr("another conversion is running")));
  EXPECT_FALSE(refusals.empty());
  run({.model = folder_ / "out"});
}

TEST_F(Convert, TakesAModelWhoseNameIsNoUtf8) {
  const auto source = folder_ / "m\xff";
  fs::copy(model_, source, fs::copy_options::recursive);
  convert({.model = source, .out = folder_ / "out"});
  expect_same(run({.model = folder_ / "out"}), run({.model = model_}));
}

TEST_F(Convert, StartsAnewWhereSomethingElseWasAskedFor) {
  const auto out = folder_ / "out";
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(convert({.model = model_, .out = out}, {.stop = stop.get_token()}), Cancelled);
  const Memory memory{.quantize = Quantize::kInt8};
  convert({.model = model_, .out = out, .memory = memory});
  EXPECT_EQ(Checkpoint::open(out / "transformer", "diffusion_pytorch_model")
                .find("transformer_blocks.0.attn.to_q.weight")
                ->dtype(),
            at::kChar);
}

TEST_F(Convert, DoesNotOverwrite) {
  EXPECT_THAT(refusal({.model = model_, .out = folder_.path()}), HasSubstr("exists"));
}

}  // namespace braid::convert_test
