// Models that have a LoRA in their weights are drawn as the LoRA's metadata says; single files say
// of which model they are.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "edit_json.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/engine/engine.h"
#include "pipeline/families/flux2/flux2.h"
#include "pipeline/families/flux3/flux3.h"
#include "pipeline/families/joy/joy.h"
#include "pipeline/families/zimage/zimage.h"
#include "pipeline/files/published.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_header.h"
#include "weights/files/safetensors_writer.h"

namespace braid::written_configs_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

class WrittenSampling : public testing::Test {
 protected:
  WrittenSampling() { fs::copy(kTiny, model_, fs::copy_options::recursive); }

  fs::path lora(const Json& metadata) const {
    const std::string name = "transformer.transformer_blocks.0.attn.to_q";
    const auto bytes = write_safetensors(std::map<std::string, Tensor>{
        {name + ".lora_A.weight", down_}, {name + ".lora_B.weight", up_}});
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    auto header = Json::parse(bytes.substr(sizeof length, length));
    if (!metadata.empty()) header["__metadata__"] = metadata;
    const auto text = header.dump();
    const std::uint64_t size = text.size();
    std::string file(sizeof size, '\0');
    std::memcpy(file.data(), &size, sizeof size);
    const auto path = folder_ / "lora.safetensors";
    write_file(path, file + text + bytes.substr(sizeof length + length));
    return path;
  }
  void write_defaults(const Json& defaults) const {
    write_file(model_ / "generation_config.json", defaults.dump());
  }
  // Converts with the LoRA, and compares what is drawn then with what is drawn with `--lora`.
  void expect_as_beside(const Json& metadata) {
    const std::vector<Adapter> adapters = {{.file = lora(metadata)}};
    fs::remove_all(out_);
    convert({.model = model_, .adapters = adapters, .out = out_});
    const Engine with({.model = model_, .adapters = adapters}, {}), merged({.model = out_}, {});
    for (const Sampling& asked :
         {Sampling{}, Sampling{.sampler = Sampler::kHeun},
          Sampling{.schedule = SigmaSchedule::kSimple}, Sampling{.shift = 2}}) {
      const Request request{.prompts = {"a"}, .sampling = asked};
      const auto got = merged.settle(request, {}), want = with.settle(request, {});
      const auto &a = got.sampling, &b = want.sampling;
      EXPECT_EQ(std::tie(a.sampler, a.schedule, a.sigmas, a.base_sigmas, a.shift, got.steps),
                std::tie(b.sampler, b.schedule, b.sigmas, b.base_sigmas, b.shift, want.steps))
          << metadata << " " << got.steps << " " << want.steps;
    }
  }

  static inline const fs::path kTiny = fs::path(BRAID_SOURCE_DIR) / "tests/data/parity/basic/model";
  TemporaryFolder folder_;
  const fs::path model_ = folder_ / "model", out_ = folder_ / "out";
  const Tensor down_ = at::randn({2, 32}), up_ = at::randn({32, 2});
};

using SlowWrittenSampling = WrittenSampling;

TEST_F(SlowWrittenSampling, IsThatOfTheLorasMetadata) {
  const Json all[] = {{{"sigmas", "1,0.6,0.2"}},
                      {{"sample_sigmas", "[1, 0.6, 0.1]"}, {"sampler", "res_multistep"}},
                      {{"sampler", "er_sde"}},
                      {{"schedule", "beta"}, {"shift", "3"}},
                      {{"shift", "3"}, {"num_inference_steps", "4"}},
                      {{"num_inference_steps", "5"}},
                      {{"base_sigmas", "1,0.5"}, {"num_inference_steps", "6"}}};
  for (const auto& metadata : all) expect_as_beside(metadata);
  write_defaults({{"sigmas", {1.0, 0.9, 0.8, 0.3}}, {"guidance_scale", 2.5}});
  for (const auto& metadata : all) expect_as_beside(metadata);
  EXPECT_EQ(read_json(out_ / "generation_config.json")["guidance_scale"], 2.5) << "the model's own";
  write_defaults({{"base_sigmas", {1.0, 0.5}}, {"num_inference_steps", 9}, {"shift", 2.0}});
  for (const auto& metadata : all) expect_as_beside(metadata);
  edit_json(model_ / "model_index.json", [](Json& index) {
    index["sample_sigmas"] = {1.0, 0.9, 0.4};
  });
  for (const auto& metadata : all) expect_as_beside(metadata);
}

TEST_F(WrittenSampling, StaysTheModelsWhereNoLoraNamesOne) {
  convert({.model = model_, .adapters = {{.file = lora({})}}, .out = out_});
  EXPECT_FALSE(is_there(out_ / "generation_config.json"));
  write_defaults({{"sampler", "heun"}});
  fs::remove_all(out_);
  const auto named = lora({{"sampler", "er_sde"}});
  convert({.model = model_, .adapters = {{.file = named, .scale = 0}}, .out = out_});
  EXPECT_EQ(read_file(out_ / "generation_config.json"), R"({"sampler":"heun"})") << "it is off";
}

TEST_F(WrittenSampling, GivesTheSamePicture) {
  const std::vector<Adapter> adapters = {
      {.file = lora({{"sigmas", "[1, 0.3]"}, {"sampler", "heun"}})}};
  convert({.model = model_, .adapters = adapters, .out = out_});
  const auto drawn = [](PipelineOptions options) {
    options.dtype = Dtype::kBfloat16;  // as the model is stored: its weights are rounded once
    return Engine(options, {})
        .generate({.prompts = {"a star"}, .width = 64, .height = 48, .max_sequence_length = 13}, {},
                  {.record = RecordTensors::kYes})
        .facts.recording.at("latents_final");
  };
  const auto want = drawn({.model = model_, .adapters = adapters});
  EXPECT_TRUE(at::equal(drawn({.model = out_}), want));
  EXPECT_FALSE(at::equal(drawn({.model = model_}), want));
}

TEST_F(WrittenSampling, IsMissedInASingleFile) {
  std::vector<std::string> warnings;
  const auto write_single = [&](const Json& metadata) {
    warnings.clear();
    fs::remove(folder_ / "out.safetensors");
    convert({.model = model_,
             .adapters = {{.file = lora(metadata)}},
             .out = folder_ / "out.safetensors",
             .form = ConvertOptions::Form::kSingleFile},
            {.warning = [&](const std::string& warning) { warnings.push_back(warning); }});
  };
  write_single({{"sigmas", "1,0.6"}});
  EXPECT_THAT(warnings, testing::Contains(HasSubstr("names how pictures are drawn, which a single "
                                                    "file leaves out")));
  write_single({{"title", "ink"}});
  EXPECT_TRUE(warnings.empty()) << warnings[0];
}

template <class Config>
Config read_back(const Family& family, Config (*read)(const JsonObject&)) {
  const auto json = parse_json(family.config_text(*family.denoisers().front()), "f");
  return read(JsonObject(json, "f"));
}

// The product of 22 and 15/22 is a bit below 15 in float64, and the classes round it down.
TEST(WrittenConfigs, AreReadAsTheyWere) {
  constexpr std::int64_t kHeads = 11, kHidden = 22, kWide = 15;
  ASSERT_EQ(int(22 * (15 / 22.0)), 14);
  const auto flux2 = make_flux2_family(
      {.flux = {.num_heads = kHeads, .head_width = 2, .mlp_hidden = kWide, .axes = {0, 0, 0, 2}}},
      {}, {});
  EXPECT_EQ(read_back(*flux2, read_flux2_config).mlp_hidden, kWide);
  const auto flux3 = make_flux3_family(
      {.flux = {.num_heads = kHeads, .head_width = 2, .mlp_hidden = kWide, .axes = {0, 0, 0, 2}}},
      {}, {});
  EXPECT_EQ(read_back(*flux3, read_flux3_config).mlp_hidden, kWide);
  const auto joy = make_joy_family(
      {.joy = {.hidden = kHidden, .num_heads = kHeads, .mlp_hidden = kWide, .axes = {0, 0, 2}}}, {},
      {});
  EXPECT_EQ(read_back(*joy, read_joy_config).mlp_hidden, kWide);
  const auto zimage = make_zimage_family({.zimage = {.qk_norm = false}});
  EXPECT_FALSE(read_back(*zimage, read_zimage_config).qk_norm);
}

using Notes = std::map<std::string, std::string>;

class WrittenNotes : public testing::Test {
 protected:
  fs::path single_file_of(const fs::path& model, const fs::path& components = {}) const {
    const auto out = folder_ / "mine.safetensors";
    fs::remove(out);
    convert({.model = model,
             .components = components,
             .out = out,
             .form = ConvertOptions::Form::kSingleFile});
    return out;
  }
  static Notes notes_of(const fs::path& file) {
    const MappedFile mapped(file);
    return safetensors_notes(mapped.bytes());
  }

  static inline const fs::path kModels = fs::path(BRAID_SOURCE_DIR) / "tests/data/parity";
  TemporaryFolder folder_;
};

// The usual model of that shape is the turbo, of other steps and guidance.
TEST_F(WrittenNotes, OfASingleFileNameItsModel) {
  const fs::path published = folder_ / "published";
  fs::create_directory(published);
  for (const auto* const name : {"Z-Image", "Z-Image-Turbo"})
    fs::copy(kModels / "zimage-turbo/model", published / name, fs::copy_options::recursive);
  for (const auto* const name : {"Z-Image", "Z-Image-Turbo"}) {
    const auto choice = choose_published(single_file_of(published / name), published);
    EXPECT_EQ(choice.directory, published / name);
    EXPECT_EQ(choice.why, "by its metadata");
  }
  EXPECT_EQ(notes_of(single_file_of(published / "Z-Image")),
            (Notes{{"base_model", "Z-Image base"}, {"format", "pt"}}));
}

TEST_F(WrittenNotes, OfASingleFileAreThoseOfItsSource) {
  const auto stored = Checkpoint::open_file(kModels / "basic/transformer.safetensors");
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, one] : stored.tensors()) tensors[name] = one.view();
  const auto source = folder_ / "source.safetensors";
  write_file(source, write_safetensors(tensors, {{"modelspec.title", "Ink"},
                                                 {"modelspec.license", "CC0"},
                                                 {"modelspec.hash_sha256", "0x12"},
                                                 {"base_model", "somebody's"}}));
  EXPECT_EQ(notes_of(single_file_of(source, kModels / "basic/model")),
            (Notes{{"base_model", "somebody's"},
                   {"format", "pt"},
                   {"modelspec.license", "CC0"},
                   {"modelspec.title", "Ink"}}));
}

}  // namespace braid::written_configs_test
