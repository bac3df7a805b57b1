// Models whose files are searched for: in a models folder of ComfyUI, and by a single file's shape.
#include "pipeline/files/found_files.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "message_of.h"
#include "pipeline/engine/engine.h"
#include "pipeline/files/model_folder.h"
#include "pipeline/files/published.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"

namespace braid::found_files_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

const fs::path kParity = fs::path(BRAID_SOURCE_DIR) / "tests/data/parity";
const fs::path kModel = kParity / "basic/model";  // its transformer.safetensors is prefixed

// A model directory without its weights.
void copy_without_weights(const fs::path& model, const fs::path& to) {
  const auto links = fs::directory_options::follow_directory_symlink;
  for (const auto& entry : fs::recursive_directory_iterator(model, links)) {
    if (entry.is_directory() || entry.path().extension() == ".safetensors") continue;
    const auto copy = to / entry.path().lexically_relative(model);
    fs::create_directories(copy.parent_path());
    fs::copy_file(entry.path(), copy);
  }
}

std::map<std::string, Tensor> tensors_of(const Checkpoint& file, const std::string& prefix = "") {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, stored] : file.tensors()) tensors[prefix + name] = stored.view().clone();
  return tensors;
}

std::vector<std::uint8_t> picture_of(const PipelineOptions& options) {
  auto in_float = options;
  in_float.dtype = Dtype::kFloat32;
  return Engine(in_float, {})
      .generate({.prompts = {"a red circle on a blue background"},
                 .width = 64,
                 .height = 48,
                 .steps = 1,
                 .max_sequence_length = 16},
                {})
      .pictures.front()
      .rgb;
}

// diffusers writes the class that a directory was last used as.
TEST(ModelDirectory, IsKnownByAllClassesOfItsModel) {
  const std::map<std::string, std::vector<std::string>> kClasses = {
      {"basic",
       {"FluxImg2ImgPipeline", "FluxInpaintPipeline", "FluxControlNetPipeline",
        "FluxControlNetImg2ImgPipeline", "FluxControlNetInpaintPipeline"}},
      {"kontext-mask", {"FluxKontextInpaintPipeline"}},
      {"control", {"FluxControlImg2ImgPipeline", "FluxControlInpaintPipeline"}},
      {"klein", {"Flux2KleinInpaintPipeline"}},
      {"zimage-turbo", {"ZImageImg2ImgPipeline", "ZImageInpaintPipeline"}}};
  for (const auto& [name, classes] : kClasses)
    for (const auto& saved_as : classes) {
      const TemporaryFolder folder;
      const auto model = kParity / name / "model";
      for (const auto& part : fs::directory_iterator(model))
        if (part.is_directory())
          fs::create_directory_symlink(part.path(), folder / part.path().filename());
      auto index = read_json(model / "model_index.json");
      const auto usual = index["_class_name"].get<std::string>();
      index["_class_name"] = saved_as;
      write_file(folder / "model_index.json", index.dump());
      EXPECT_EQ(family_of_directory(folder.path()).pipeline_class, usual) << saved_as;
    }
}

class FoundFiles : public testing::Test {
 protected:
  FoundFiles() {
    copy_without_weights(kModel, published() / "Basic-dev");
    copy_without_weights(kModel, published() / "Basic-base-dev");
    copy_without_weights(kParity / "schnell/model", published() / "Schnell");
    put(kParity / "basic/transformer.safetensors", "diffusion_models/basic_dev.safetensors");
    put(kModel / "text_encoder/model.safetensors", "clip/one.safetensors");
    put(kModel / "text_encoder_2/model.safetensors", "text_encoders/other/two.safetensors");
    put(kModel / "vae/diffusion_pytorch_model.safetensors", "vae/three.safetensors");
    // from other models, damaged, and not weights
    put(kParity / "schnell/model/text_encoder/model.safetensors", "clip/schnell.safetensors");
    put(kParity / "schnell/model/vae/diffusion_pytorch_model.safetensors", "vae/s.safetensors");
    write_file(folder_ / "comfy/models/clip/cut.safetensors", "12345");
    write_file(folder_ / "comfy/models/vae/put_vae_here", "");
  }
  fs::path published() const { return folder_ / "published"; }
  fs::path comfy() const { return folder_ / "comfy"; }
  void put(const fs::path& file, const fs::path& as) const {
    const auto to = folder_ / "comfy/models" / as;
    fs::create_directories(to.parent_path());
    fs::copy_file(file, to);
  }
  PipelineOptions options(const fs::path& model = {}) const {
    return {.model = model, .published = published(), .comfy = comfy()};
  }
  std::string refusal(const PipelineOptions& options) const {
    return message_of([&] { (void)find_model(options); });
  }
  const TemporaryFolder folder_;
};

TEST_F(FoundFiles, MakeTheDirectorysPicture) {
  const auto own = picture_of({.model = kModel});
  for (const char* const name : {"", "basic_dev", "basic_dev.safetensors"})
    EXPECT_EQ(picture_of(options(name)), own) << name;
  const auto alone = comfy() / "models/diffusion_models/basic_dev.safetensors";
  EXPECT_EQ(picture_of(options(alone)), own);
  const auto found = find_model(options()).options;
  EXPECT_EQ(found.components.filename(), "Basic-dev");
  EXPECT_EQ(found.vae_file.filename(), "three.safetensors");
  EXPECT_TRUE(found.comfy.empty());
}

TEST_F(FoundFiles, AreFoundOnceThoughLinksLeadToThemAgain) {
  const auto models = comfy() / "models";
  fs::create_directory_symlink("diffusion_models", models / "unet");
  for (const char* const name : {"one", "two"})
    fs::create_directory_symlink("..", models / "text_encoders" / name);
  const auto found = find_model(options("basic_dev")).options;
  EXPECT_EQ(found.model.filename(), "basic_dev.safetensors");
  EXPECT_EQ(found.text_encoder_files, find_model(options()).options.text_encoder_files);
}

TEST_F(FoundFiles, MayAllLieInOne) {
  const auto part = [](const char* folder, const char* stem, const std::string& prefix) {
    return tensors_of(Checkpoint::open(kModel / folder, stem), prefix);
  };
  auto whole = tensors_of(Checkpoint::open_file(kParity / "basic/transformer.safetensors"));
  whole.merge(part("text_encoder", "model", "text_encoders.clip_l.transformer."));
  whole.merge(part("text_encoder_2", "model", "text_encoders.t5xxl.transformer."));
  whole.merge(part("vae", "diffusion_pytorch_model", "vae."));
  fs::remove_all(comfy() / "models");
  fs::create_directories(comfy() / "models/checkpoints");
  const auto file = comfy() / "models/checkpoints/all.safetensors";
  write_file(file, write_safetensors(whole));
  EXPECT_EQ(picture_of(options()), picture_of({.model = kModel}));
  EXPECT_EQ(picture_of({.model = file,
                        .published = published(),
                        .text_encoder_files = {file},
                        .vae_file = file}),
            picture_of({.model = kModel}));
}

TEST_F(FoundFiles, AreTheLargestThatFit) {
  auto wide = tensors_of(Checkpoint::open(kModel / "text_encoder_2", "model"));
  for (auto& [name, tensor] : wide) tensor = tensor.to(at::kFloat);
  write_file(comfy() / "models/clip/wide.safetensors", write_safetensors(wide));
  const auto texts = find_model(options()).options.text_encoder_files;
  ASSERT_EQ(texts.size(), 2);
  EXPECT_EQ(texts[0].filename(), "one.safetensors");
  EXPECT_EQ(texts[1].filename(), "wide.safetensors");
  auto chosen = options();
  chosen.text_encoder_files = {comfy() / "models/text_encoders/other/two.safetensors"};
  EXPECT_EQ(find_model(chosen).options.text_encoder_files[0], chosen.text_encoder_files[0]);
}

TEST_F(FoundFiles, OfOneShapeAreToldByTheirNames) {
  const auto chosen = [&](const std::string& name) {
    const auto file = folder_ / name;
    fs::copy_file(kParity / "basic/transformer.safetensors", file);
    return choose_published(file, published()).directory.filename().string();
  };
  EXPECT_EQ(chosen("basic-dev-fp8.safetensors"), "Basic-dev");
  EXPECT_EQ(chosen("BASIC_base_dev.safetensors"), "Basic-base-dev");
  EXPECT_EQ(chosen("merge.safetensors"), "Basic-dev");
  const auto other = kParity / "schnell/model/transformer/diffusion_pytorch_model.safetensors";
  EXPECT_EQ(choose_published(other, published()).directory.filename(), "Schnell");
}

TEST_F(FoundFiles, ThatAreNotThereAreNamed) {
  EXPECT_THAT(refusal({.model = {}, .comfy = folder_ / "none"}),
              HasSubstr("there is no ComfyUI models folder at"));
  EXPECT_THAT(refusal(options("other")),
              AllOf(HasSubstr("there is no other, and none in"), HasSubstr("basic_dev")));
  put(kParity / "basic/transformer.safetensors", "unet/second.safetensors");
  EXPECT_THAT(refusal(options()), HasSubstr("basic_dev.safetensors, second.safetensors"));
  put(kParity / "basic/transformer.safetensors", "checkpoints/second.safetensors");
  EXPECT_EQ(refusal(options("second.safetensors")), "") << "the first folder's";
  EXPECT_THAT(refusal(options("second")), HasSubstr("has 2 files named second"));
  auto adapted = options("basic_dev");
  adapted.adapters = {{.file = "ink"}};
  EXPECT_THAT(refusal(adapted), HasSubstr("there is no ink, and none in"));
  fs::remove(comfy() / "models/vae/three.safetensors");
  EXPECT_THAT(refusal(options("basic_dev")),
              AllOf(HasSubstr("no weights of the autoencoder"), HasSubstr("s.safetensors")));
  const auto vae = kModel / "vae/diffusion_pytorch_model.safetensors";
  EXPECT_THAT(refusal({.model = vae, .published = published()}), HasSubstr("`vae_file`"));
}

// ------------------------------------------------------------------- what cannot be read

const char* const kPointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1234\n";

TEST_F(FoundFiles, ThatCannotBeReadAreNamedWhereNoneFits) {
  const auto two = comfy() / "models/text_encoders/other/two.safetensors";
  const auto bytes = read_file(two);
  const auto refused = [&] { return refusal(options()); };
  write_file(two, kPointer);
  EXPECT_THAT(refused(), AllOf(HasSubstr("has no weights of T5, none of these fits: one.safe"),
                               HasSubstr(two.string() + " is a Git LFS pointer"),
                               HasSubstr("models/clip/cut.safetensors")));
  write_file(two, bytes.substr(0, bytes.size() - 4));
  EXPECT_THAT(refused(), HasSubstr("download was not completed"));
  fs::remove(two);
  fs::create_symlink("two.safetensors", two);
  EXPECT_THAT(refused(), HasSubstr("two.safetensors cannot be read: Too many levels"));
  fs::remove(two);
  fs::create_symlink("nowhere", two);
  EXPECT_THAT(refused(), HasSubstr("two.safetensors cannot be read: No such file"));
  fs::remove_all(comfy() / "models/text_encoders");
  fs::create_directory_symlink("text_encoders", comfy() / "models/text_encoders");
  EXPECT_THAT(refused(), HasSubstr("models/text_encoders cannot be read: Too many levels"));
  EXPECT_THAT(refusal({.model = "basic_dev",
                       .published = published(),
                       .comfy = comfy(),
                       .text_encoder_files = {"missing"}}),
              HasSubstr("Too many levels of symbolic links"));
}

TEST_F(FoundFiles, ThatCannotBeReadAreNotPassedOverSilently) {
  const auto pointer = comfy() / "models/clip/t5xxl.safetensors";
  write_file(pointer, kPointer);
  fs::remove(comfy() / "models/clip/cut.safetensors");
  std::vector<std::string> warned;
  const auto found = find_model(options(), WeightsNeeded::kAll, {},
                                [&](const std::string& sentence) { warned.push_back(sentence); });
  EXPECT_EQ(found.options.text_encoder_files[1].filename(), "two.safetensors");
  ASSERT_EQ(warned.size(), 1u) << "once, though two encoders were looked for";
  EXPECT_THAT(warned[0], AllOf(HasSubstr("one.safetensors for CLIP, two.safetensors for T5, but " +
                                         pointer.string() + " is a Git LFS pointer")));
}

// Another tool's file is whole: it is named only where nothing fits.
TEST_F(FoundFiles, OfOtherToolsAreNamedOnlyWhereNoneFits) {
  const auto coded = comfy() / "models/clip/awq.safetensors";
  const auto codes = at::zeros({4, 4}, at::kInt);
  write_file(coded, write_safetensors({{"layers.0.q_proj.qweight", codes},
                                       {"layers.0.q_proj.qzeros", codes},
                                       {"layers.0.q_proj.scales", at::ones({4, 4}, at::kHalf)}}));
  fs::remove(comfy() / "models/clip/cut.safetensors");
  std::vector<std::string> warned;
  (void)find_model(options(), WeightsNeeded::kAll, {},
                   [&](const std::string& sentence) { warned.push_back(sentence); });
  EXPECT_TRUE(warned.empty()) << warned[0];
  fs::remove(comfy() / "models/text_encoders/other/two.safetensors");
  EXPECT_THAT(refusal(options()), AllOf(HasSubstr("has no weights of T5"),
                                        HasSubstr(coded.string() + " is quantized")));
}

// As in a cache of which somebody deleted the large files.
TEST_F(FoundFiles, ThatAreDeadLinksSayWhereTheyLead) {
  const auto snapshot = folder_ / "snapshot", blobs = folder_ / "blobs";
  fs::create_directories(snapshot);
  fs::create_directories(blobs);
  const auto link = snapshot / "m.safetensors";
  fs::create_symlink("../blobs/123", link);
  const auto says = HasSubstr(link.string() + " is a link to " +
                              (snapshot / "../blobs/123").string() + ", which is not there");
  EXPECT_THAT(refusal({.model = snapshot, .published = published()}), says);
  EXPECT_THAT(refusal({.model = link, .published = published()}), says);
  EXPECT_THAT(refusal(options(link)), says);
  EXPECT_THAT(refusal({.model = kModel, .vae_file = link}), says);
  const auto transformer = kModel / "transformer/diffusion_pytorch_model.safetensors";
  EXPECT_THAT(refusal({.model = transformer, .components = link}), says);
  write_file(blobs / "123.incomplete", "");
  EXPECT_THAT(refusal({.model = snapshot}),
              AllOf(says, HasSubstr("123.incomplete is: a download that was not completed")));
}

TEST_F(FoundFiles, BesideTheComponentsWeightsAreSaidToFit) {
  std::vector<std::string> said;
  const auto told_of = [&](const fs::path& components) {
    said.clear();
    auto asked = options("basic_dev");
    asked.components = components;
    return find_model(asked, WeightsNeeded::kAll,
                      [&](const std::string& sentence) { said.push_back(sentence); })
        .files;
  };
  EXPECT_TRUE(told_of(kModel).part_files.empty()) << "the components' own weights come first";
  ASSERT_EQ(said.size(), 3u);
  EXPECT_THAT(said[1],
              AllOf(HasSubstr("T5: the weights in " + (kModel / "text_encoder_2").string()),
                    HasSubstr("`components` come first; two.safetensors fits, too: "
                              "`text_encoder_files` chooses")));
  EXPECT_THAT(said[2], HasSubstr("three.safetensors fits, too: `vae_file` chooses"));
  EXPECT_EQ(told_of(published() / "Basic-dev").part_files.size(), 3u);
  EXPECT_TRUE(said.empty()) << said[0];
}

// A shell's <(...) is one.
TEST(ModelFile, IsNoPipe) {
  const TemporaryFolder folder;
  const auto pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto refusal = [](const PipelineOptions& options) {
    return message_of([&] { (void)find_model(options, WeightsNeeded::kAll, {}); });
  };
  EXPECT_THAT(refusal({.model = pipe}), HasSubstr("is a pipe: models are read from files"));
  const auto transformer = kModel / "transformer/diffusion_pytorch_model.safetensors";
  EXPECT_THAT(refusal({.model = transformer, .components = pipe}), HasSubstr("is a pipe"));
  EXPECT_THAT(refusal({.model = kModel, .vae_file = pipe}), HasSubstr("is a pipe"));
}

}  // namespace braid::found_files_test
