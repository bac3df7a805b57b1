// Which configuration a single file takes: by its shapes, its name, its metadata, or as the usual
// model of the shape. Shapes and names are those of files that are distributed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "message_of.h"
#include "pipeline/families/family.h"
#include "pipeline/files/found_files.h"
#include "pipeline/files/model_folder.h"
#include "pipeline/files/model_words.h"
#include "pipeline/files/published.h"
#include "pipeline/files/published_shapes.h"
#include "temporary_folder.h"

namespace braid::published_choice_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const fs::path kPublished = fs::path(BRAID_SOURCE_DIR) / "models/published";

class PublishedChoices : public testing::Test {
 protected:
  fs::path file(const std::string& name, const Shapes& shapes,
                const std::string& metadata = "") const {
    const auto path = folder_ / (name + ".safetensors");
    write_sparse(path, shapes, metadata);
    return path;
  }
  std::string chosen(const std::string& name, const Shapes& shapes,
                     const std::string& metadata = "") const {
    return choose_published(file(name, shapes, metadata), kPublished).directory.filename();
  }
  const TemporaryFolder folder_;
};

using SlowPublishedChoices = PublishedChoices;

TEST_F(SlowPublishedChoices, AreTurboUnlessTheNameSaysBase) {
  const auto shapes = zimage_shapes();
  for (const char* const name :
       {"z_image_turbo_bf16", "zImageTurbo_v10", "portraitMixZIT_v2", "zit_realistic",
        "beyondZImage", "realisticZit", "model", "fluxlike"})
    EXPECT_EQ(chosen(name, shapes), "Z-Image-Turbo") << name;
  for (const char* const name : {"z_image_bf16", "z-image-Q8_0", "zImageBase_v1", "my_zib_tune",
                                 "Z-Image-De-Turbo", "zimage-dedistilled"})
    EXPECT_EQ(chosen(name, shapes), "Z-Image") << name;
}

TEST_F(SlowPublishedChoices, OfFlux1AreToldByGuidanceThenByName) {
  const auto guided = flux1_shapes();
  for (const char* const name :
       {"flux1-dev", "fluxDevQ8", "someMerge", "flux-krea-dev", "schnellDevMerge"})
    EXPECT_EQ(chosen(name, guided), "FLUX.1-dev") << name;
  EXPECT_EQ(chosen("flux1-kontext-dev", guided), "FLUX.1-Kontext-dev");
  const auto unguided = flux1_shapes({.guidance = false});
  for (const char* const name : {"flux1-schnell", "someMerge", "deviceTune"})
    EXPECT_EQ(chosen(name, unguided), "FLUX.1-schnell") << name;
  for (const char* const name : {"flux-dev-de-distill", "fluxdev_undistilled", "dedistilled"})
    EXPECT_EQ(chosen(name, unguided), "FLUX.1-dev") << name;
}

TEST_F(PublishedChoices, OfKleinAreDistilledUnlessTheNameSaysMore) {
  const auto shapes = klein_9b_shapes();
  EXPECT_EQ(chosen("flux-2-klein-9b", shapes), "FLUX.2-klein-9B");
  EXPECT_EQ(chosen("myKleinTune", shapes), "FLUX.2-klein-9B");
  EXPECT_EQ(chosen("flux-2-klein-base-9b-fp8", shapes), "FLUX.2-klein-base-9B");
  EXPECT_EQ(chosen("flux-2-klein-9b-kv", shapes), "FLUX.2-klein-9B-KV");
}

TEST_F(PublishedChoices, AreToldByMetadataIfTheNameIsSilent) {
  const auto unguided = flux1_shapes({.guidance = false});
  EXPECT_EQ(chosen("tune", unguided, R"({"modelspec.architecture":"flux-1-dev"})"), "FLUX.1-dev");
  EXPECT_EQ(chosen("tune", unguided, R"({"modelspec.description":"not for dev"})"),
            "FLUX.1-schnell")
      << "descriptions mention anything";
  EXPECT_EQ(chosen("flux1-schnell", unguided, R"({"modelspec.title":"dev"})"), "FLUX.1-schnell");
  const auto in_cache = "models--nyanko--flux-dev-de-distill/snapshots/0123/consolidated";
  EXPECT_EQ(chosen(in_cache, unguided), "FLUX.1-dev") << "by its repository";
}

TEST_F(PublishedChoices, AreRefusedIfTheNameContradictsItself) {
  const auto refusal = [&](const std::string& name, const Shapes& shapes) {
    return message_of([&] { (void)chosen(name, shapes); });
  };
  EXPECT_THAT(refusal("z_image_turbo_base_merge", zimage_shapes()),
              AllOf(HasSubstr("`components` Z-Image"), HasSubstr("`components` Z-Image-Turbo")));
  EXPECT_THAT(refusal("flux-dev-schnell", flux1_shapes({.guidance = false})),
              HasSubstr("`components` FLUX.1-schnell"));
  EXPECT_THAT(refusal("klein-9b-base-kv", klein_9b_shapes()), HasSubstr("speaks for several"));
}

TEST_F(PublishedChoices, AreSaidWithTheFlagThatChangesThem) {
  const auto path = file("beyondZImage", zimage_shapes());
  EXPECT_THAT(sentence_of_choice(choose_published(path, kPublished), path),
              AllOf(HasSubstr("beyondZImage.safetensors is taken as Z-Image-Turbo"),
                    HasSubstr("usual model"), HasSubstr("`components` Z-Image takes")));
  std::vector<std::string> said;
  const auto note = [&](const std::string& sentence) { said.push_back(sentence); };
  (void)with_paths({.model = path, .published = kPublished}, note);
  EXPECT_THAT(said, ElementsAre(HasSubstr("Z-Image-Turbo")));
  said.clear();
  (void)with_paths({.model = path, .components = "Z-Image", .published = kPublished}, note);
  EXPECT_THAT(said, IsEmpty()) << "it was chosen";
}

TEST_F(PublishedChoices, HaveTheirWeightsOnTheHub) {
  const char* const old = std::getenv("HF_HUB_CACHE");
  const std::string before = old ? old : "";
  ::setenv("HF_HUB_CACHE", (folder_ / "hub").c_str(), 1);
  const auto refusal = [&](const std::string& name) {
    return message_of([&] { (void)with_paths({.model = name, .published = kPublished}); });
  };
  EXPECT_EQ(refusal("FLUX.1-dev"),
            "there is no model at FLUX.1-dev, Braid has its configuration alone: 'braid pull "
            "black-forest-labs/FLUX.1-dev' loads the whole, as `model` "
            "black-forest-labs/FLUX.1-dev");
  EXPECT_THAT(refusal("flux1-dev"), HasSubstr("'braid pull black-forest-labs/FLUX.1-dev'"));
  EXPECT_THAT(refusal("Z-Image-Turbo"), HasSubstr("'braid pull Tongyi-MAI/Z-Image-Turbo'"));
  for (const auto& directory : published_directories(kPublished)) {
    const auto name = directory.filename().string();
    const auto publisher = name.starts_with("FLUX.") ? "black-forest-labs" : "Tongyi-MAI";
    EXPECT_THAT(refusal(name), HasSubstr(text_of("'braid pull ", publisher, "/", name, "'")));
  }
  EXPECT_EQ(refusal("FLUX.1-other"), "") << "the reader of the file complains";
  const auto here = folder_ / "hub/models--black-forest-labs--FLUX.1-dev";
  fs::create_directories(here / "snapshots/0123456789");
  fs::create_directories(here / "refs");
  write_file(here / "refs/main", "0123456789");
  EXPECT_EQ(refusal("FLUX.1-dev"),
            "there is no model at FLUX.1-dev: Hugging Face's cache has it "
            "as `model` black-forest-labs/FLUX.1-dev");
  old ? ::setenv("HF_HUB_CACHE", before.c_str(), 1) : ::unsetenv("HF_HUB_CACHE");
}

// A ControlNet has the embedders of its model. With components and without, nothing is missing
// beside it.
TEST_F(PublishedChoices, AreNoneForAControlNet) {
  auto shapes = flux1_shapes();
  shapes["controlnet_blocks.0.weight"] = {3072, 3072};
  const auto path = file("net", shapes);
  const auto is_named =
      AllOf(HasSubstr("net.safetensors is a ControlNet, not a model"), HasSubstr("`controlnets`"));
  EXPECT_THAT(message_of([&] { require_denoiser(path); }), is_named);
  std::erase_if(shapes, [](const auto& tensor) { return tensor.first.starts_with("final_"); });
  const auto part = file("part", shapes);
  EXPECT_THAT(message_of([&] { (void)choose_published(part, kPublished); }),
              HasSubstr("part.safetensors is a ControlNet, not a model"));
}

// FLUX.1-lite and Flex.1 have 8 + 38 blocks, heavy ones 32 + 64.
TEST_F(PublishedChoices, MayHaveOtherNumbersOfBlocks) {
  for (const auto& blocks : {FluxBlocks{8, 38}, FluxBlocks{32, 64}, FluxBlocks{19, 10, false}}) {
    const auto path = file("Flex.1-alpha", flux1_shapes(blocks));
    const auto choice = choose_published(path, kPublished);
    EXPECT_EQ(choice.directory.filename(), blocks.guidance ? "FLUX.1-dev" : "FLUX.1-schnell");
    EXPECT_THAT(choice.differences, HasSubstr("blocks instead of 19 + 38"));
    const ModelFiles files{.folder = choice.directory,
                           .single_file = path,
                           .family = &family_of_directory(choice.directory)};
    const auto shape = open_family(files)->shape();
    EXPECT_EQ(shape.blocks[0].count, blocks.doubles);
    EXPECT_EQ(shape.blocks[1].count, blocks.singles);
  }
}

// A tune of dev without guidance keeps dev's schedule, steps and text.
TEST_F(PublishedChoices, KeepTheirDefaultsWithoutGuidance) {
  const auto path = file("flux-dev-de-distill", flux1_shapes({.guidance = false}));
  const auto choice = choose_published(path, kPublished);
  EXPECT_THAT(choice.differences, HasSubstr("`true_cfg`"));
  const ModelFiles files{.folder = choice.directory,
                         .single_file = path,
                         .family = &family_of_directory(choice.directory)};
  const auto& limits = open_family(files)->description().limits;
  EXPECT_EQ(limits.defaults.steps, 28);
  EXPECT_EQ(limits.defaults.max_sequence_length, 512);
}

TEST_F(PublishedChoices, AreNamedAsPublished) {
  const auto found = [](const std::string& name) {
    return published_named(name, kPublished).filename().string();
  };
  EXPECT_EQ(found("Z-Image-Turbo"), "Z-Image-Turbo");
  EXPECT_EQ(found("z_image"), "Z-Image");
  EXPECT_EQ(found("flux1-dev"), "FLUX.1-dev");
  EXPECT_EQ(found("klein-9b-kv"), "FLUX.2-klein-9B-KV");
  EXPECT_EQ(found("FLUX.1-Krea-dev"), "FLUX.1-dev");
  EXPECT_EQ(found("FLUX.1-pro"), "");
  const auto path = file("beyond", zimage_shapes());
  const auto components = [&](const std::string& name) {
    return with_paths({.model = path, .components = name, .published = kPublished})
        .components.filename()
        .string();
  };
  EXPECT_EQ(components("Z-Image"), "Z-Image");
  EXPECT_EQ(components("Tongyi-MAI/Z-Image-Turbo"), "Z-Image-Turbo");
  EXPECT_THAT(message_of([&] { (void)components("Z-Image-Ultra"); }),
              AllOf(HasSubstr("no configuration of that name"), HasSubstr("FLUX.2-klein-4B")));
}

TEST_F(PublishedChoices, ThatFitNothingAreToldWhy) {
  auto shapes = flux1_shapes();
  shapes["extra.weight"] = {5};
  EXPECT_THAT(message_of([&] { (void)chosen("flux", shapes); }),
              AllOf(HasSubstr("is a FLUX.1 transformer"), HasSubstr("extra.weight"),
                    HasSubstr("`components`")));
}

// ComfyUI saves the schedule beside the model, and some tools a wrapper's name before all others.
TEST_F(SlowPublishedChoices, OverlookWhatToolsAdd) {
  auto shapes = flux1_shapes();
  shapes["model_sampling.sigmas"] = {10000};
  EXPECT_EQ(chosen("flux", shapes), "FLUX.1-dev");
  for (const std::string prefix : {"transformer.", "model.", "model.diffusion_model.", "net.",
                                   "_orig_mod.", "module._orig_mod."}) {
    Shapes prefixed;
    for (const auto& [name, shape] : flux1_shapes()) prefixed[prefix + name] = shape;
    EXPECT_EQ(chosen("flux", prefixed), "FLUX.1-dev") << prefix;
  }
}

TEST(ModelWords, AreCutAsPeopleWriteThem) {
  EXPECT_THAT(words_of_name("fluxDevQ8"), ElementsAre("flux", "dev", "q", "8"));
  EXPECT_THAT(words_of_name("portraitMixZIT_v2"), ElementsAre("portrait", "mix", "zit", "v", "2"));
  EXPECT_THAT(words_of_name("ZITRealistic"), ElementsAre("zit", "realistic"));
  EXPECT_THAT(words_of_name("zimageturbo"), ElementsAre("z", "image", "turbo"));
  EXPECT_THAT(words_of_name("FLUX.1-dev"), ElementsAre("flux", "1", "dev"));
  EXPECT_THAT(without_formats(words_of_name("z_image-fp8_e4m3fn_scaled")),
              ElementsAre("z", "image"));
  EXPECT_FALSE(says_word(words_of_name("de-turbo"), "turbo"));
  EXPECT_FALSE(says_word(words_of_name("device"), "dev"));
}

}  // namespace braid::published_choice_test
