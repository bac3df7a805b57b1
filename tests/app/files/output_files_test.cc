// File names of pictures, and the texts written into them.
#include "app/files/output_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "app/files/picture_text.h"
#include "base/file.h"
#include "image/png.h"
#include "message_of.h"
#include "temporary_folder.h"

namespace braid::output_files_test {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Format = FileForm::Format;

TEST(OutputFiles, NumbersAreAsLongAsTheLast) {
  const TemporaryFolder folder;
  EXPECT_EQ(OutputFiles({.path = "x.png"}, 1).of_picture(0), "x.png");
  EXPECT_EQ(OutputFiles({.path = "x.png"}, 2).of_picture(1), "x-001.png");
  EXPECT_EQ(OutputFiles({.path = "x.png"}, 1001).of_picture(7), "x-0007.png");
  EXPECT_EQ(OutputFiles({.path = "/tmp/a.b.png"}, 2).of_picture(0), "/tmp/a.b-000.png");
  EXPECT_EQ(OutputFiles({.path = folder.path()}, 2).of_picture(0), folder / "braid-000.png");
  EXPECT_EQ(OutputFiles({.path = "x"}, 2).of_picture(0), "x-000");
}

TEST(OutputFiles, TakeTheirFormatFromTheExtensionOrTheFlag) {
  const auto format = [](const OutputFlags& flags) { return OutputFiles(flags, 1).form().format; };
  EXPECT_EQ(format({.path = "x"}), Format::kPng);
  EXPECT_EQ(format({.path = "x.v2"}), Format::kPng);
  EXPECT_EQ(format({.path = "x.JPG"}), Format::kJpeg);
  EXPECT_EQ(format({.path = "x.jpeg"}), Format::kJpeg);
  EXPECT_EQ(format({.path = "x.webp"}), Format::kWebp);
  EXPECT_EQ(format({.path = "x.v2", .format = Format::kWebp}), Format::kWebp);
  EXPECT_EQ(OutputFiles({.path = "/tmp", .format = Format::kJpeg}, 1).of_picture(0).extension(),
            ".jpg");
  EXPECT_THAT(message_of([&] { format({.path = "x.png", .format = Format::kJpeg}); }),
              HasSubstr("--format jpeg and --output x.png contradict each other"));
  EXPECT_THAT(message_of([&] { format({.path = "x.png", .quality = 80}); }),
              HasSubstr("--quality"));
}

TEST(OutputFiles, RefuseEndingsOfOtherFormats) {
  const auto refusal = [](const OutputFlags& flags) {
    return message_of([&] { OutputFiles(flags, 1); });
  };
  for (const auto* const ending :
       {"gif", "mp4", "webm", "TGA", "pdf", "ico", "json", "txt", "tiff", "safetensors", "pgn"})
    EXPECT_EQ(refusal({.path = text_of("x.", ending)}),
              text_of("--output should end in .png, .jpg or .webp, it is x.", ending,
                      ": another ending needs --format, which says what to write"));
  EXPECT_EQ(refusal({.path = "x.mp4", .format = Format::kPng}), "");
  for (const auto* const name : {"x", "v1.5", "x.v2", "x.V12", "picture.final", "a.b", ".hidden",
                                 "x.2024-05-01", "Mr. Fox", "x.", "7.1 pm"})
    EXPECT_EQ(refusal({.path = name}), "") << name;
}

TEST(OutputFiles, AreRefusedWhereOneOfSeveralCannotBe) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "a-000.png");
  EXPECT_THAT(message_of([&] { OutputFiles({.path = folder / "a.png"}, 2); }),
              HasSubstr("a-000.png should be a file, it is a folder"));
}

TEST(OutputFiles, ReplaceANamedFileAndKeepThoseOfAFolder) {
  const TemporaryFolder folder;
  const auto written = [&](const OutputFlags& flags, int count) {
    OutputFiles files(flags, count);
    std::vector<std::string> names;
    for (int k = 0; k < count; ++k) names.push_back(files.write(k, "new").filename());
    return names;
  };
  using Names = std::vector<std::string>;
  const auto named = folder / "a.png";
  EXPECT_EQ(written({.path = named}, 1), Names({"a.png"}));
  EXPECT_EQ(written({.path = named}, 1), Names({"a.png"}));
  EXPECT_EQ(written({.path = named, .overwrite = Overwrite::kNumber}, 1), Names({"a-001.png"}));
  EXPECT_EQ(written({.path = named, .overwrite = Overwrite::kNumber}, 1), Names({"a-002.png"}));
  EXPECT_EQ(written({.path = folder.path()}, 1), Names({"braid.png"}));
  EXPECT_EQ(written({.path = folder.path()}, 1), Names({"braid-001.png"}));
  EXPECT_EQ(written({.path = folder.path()}, 2), Names({"braid-002.png", "braid-003.png"}));
  EXPECT_EQ(written({.path = folder.path(), .overwrite = Overwrite::kAlways}, 1),
            Names({"braid.png"}));
  EXPECT_THAT(message_of([&] { written({.path = named, .overwrite = Overwrite::kNever}, 1); }),
              HasSubstr("a.png exists already"));
}

// Another run in the same folder began with the same number.
TEST(OutputFiles, MoveOnWhereAnotherProgramWasFaster) {
  const TemporaryFolder folder;
  OutputFiles files({.path = folder.path()}, 2);
  EXPECT_EQ(files.write(0, "ours"), folder / "braid-000.png");
  write_file(folder / "braid-001.png", "theirs");
  EXPECT_EQ(files.write(1, "ours"), folder / "braid-002.png");
  EXPECT_EQ(read_file(folder / "braid-001.png"), "theirs");
}

// Whoever draws the picture again needs these.
TEST(PictureText, NamesWhatReplacesTheModelsOwn) {
  PipelineOptions options;
  options.model = "files/flux.safetensors";
  Settings settings;
  settings.width = settings.height = 64;
  Picture put_back;
  put_back.width = 640;
  put_back.height = 480;
  const auto written = [&](const char* name) {
    for (const auto& [key, value] :
         text_of_picture(put_back, Prompt{"a", "", {}, {}}, settings, options, {}))
      if (key == name) return value;
    return std::string();
  };
  EXPECT_EQ(written("size"), "64x64") << "as it was drawn";
  EXPECT_EQ(written("sampler"), "euler");
  for (const auto* const name :
       {"schedule", "vae_tiling", "components", "vae_file", "reference_cache", "frames"})
    EXPECT_EQ(written(name), "") << name;
  settings.sampling.schedule = SigmaSchedule::kModel;
  EXPECT_EQ(written("schedule"), "model") << "the model's files or an adapter may name another";
  settings.returned = Region{0, 0, 640, 480};
  EXPECT_EQ(written("size"), "") << "no request says that of its reference";
  settings.reference_cache = ReferenceCache::kOff;
  EXPECT_EQ(written("reference_cache"), "off");
  settings.frames = 5;
  EXPECT_EQ(written("frames"), "5");
  settings.vae_tiling = VaeTiling::kOn;
  options.components = "models/FLUX.1-dev";
  options.text_encoder_files = {"a/clip.safetensors", "b/t5.safetensors"};
  options.vae_file = "c/ae.safetensors";
  EXPECT_EQ(written("vae_tiling"), "on");
  EXPECT_EQ(written("components"), "FLUX.1-dev");
  EXPECT_EQ(written("text_encoder_file"), "clip.safetensors, t5.safetensors");
  EXPECT_EQ(written("vae_file"), "ae.safetensors");
}

// Other programs' scales are made of the number by what it is.
TEST(PictureText, SaysWhatItsGuidanceIs) {
  PipelineOptions options;
  options.model = "models/demo";
  Settings settings;
  const auto kind = [&](GuidanceKind of_model, GuidedFrom from = GuidedFrom::kNegative) {
    settings.guidance_kind = of_model;
    settings.true_guidance.from = from;
    for (const auto& [name, value] :
         text_of_picture({}, Prompt{"a", "", {}, {}}, settings, options, {}))
      if (name == "guidance_kind") return value;
    return std::string();
  };
  EXPECT_EQ(kind(GuidanceKind::kNone), "none");
  EXPECT_EQ(kind(GuidanceKind::kEmbedded), "embedded");
  EXPECT_EQ(kind(GuidanceKind::kEmbeddedOrTrue), "embedded");
  EXPECT_EQ(kind(GuidanceKind::kTrue), "true");
  EXPECT_EQ(kind(GuidanceKind::kTrue, GuidedFrom::kPositive), "true_from_0");
}

// A picture that was drawn must not be lost for the name of a file.
TEST(PictureText, IsUtf8WhateverFilesAreCalled) {
  PipelineOptions options;
  options.model = "files/n\xFF-model";
  options.adapters = {
      {.file = "caf\xE9.safetensors"},
      {.file = "hub/models--org--ink/snapshots/0123456789abcdef0123456789abcdef01234567"}};
  const InputFile input{.role = "init", .name = "h\u00E9, \x80.png", .sha256 = "0"};
  const auto text = text_of_picture({}, Prompt{"a", "", {}, {}}, {}, options, {input});
  using Entry = PngText::value_type;
  EXPECT_THAT(text, testing::Contains(Entry("model", "n\uFFFD-model")));
  EXPECT_THAT(text, testing::Contains(Entry("lora", "caf\uFFFD.safetensors=1, ink=1")));
  EXPECT_THAT(text, testing::Contains(Entry("init", "h\u00E9, \uFFFD.png")));
  EXPECT_NO_THROW((void)encode_png(1, 1, std::vector<std::uint8_t>(3), text));
}

// A server with Redux also makes pictures without it.
TEST(PictureText, NamesReduxWhereItWasUsed) {
  PipelineOptions options;
  options.model = "models/demo";
  options.redux = "models/redux";
  Settings settings;
  const auto names_it = [&] {
    const auto text = text_of_picture({}, Prompt{"a", "", {}, {}}, settings, options, {});
    return std::ranges::any_of(text, [](const auto& entry) { return entry.first == "redux"; });
  };
  EXPECT_FALSE(names_it());
  settings.reference_scales = {1};
  EXPECT_TRUE(names_it());
}

TEST(PictureText, SaysHowAdaptersWereApplied) {
  PipelineOptions options;
  options.model = "models/demo";
  const auto mode = [&] {
    for (const auto& [name, value] : text_of_picture({}, Prompt{"a", "", {}, {}}, {}, options, {}))
      if (name == "lora_mode") return value;
    return std::string();
  };
  options.adapter_mode = AdapterMode::kUnmerged;
  EXPECT_EQ(mode(), "") << "there is none";
  options.adapters = {{.file = "ink.safetensors"}};
  EXPECT_EQ(mode(), "unmerged");
  options.adapter_mode = AdapterMode::kFused;
  EXPECT_EQ(mode(), "fused");
  options.adapter_mode = AdapterMode::kAuto;
  EXPECT_EQ(mode(), "");
}

// --latents takes such files.
TEST(PictureText, NamesThePictureOfAFileOfLatents) {
  PipelineOptions options;
  options.model = "models/demo";
  const InputFile input{.role = "latents", .name = "d.safetensors", .sha256 = "0"};
  Settings settings;
  settings.prompts.resize(1);
  settings.seed = 7;
  Picture second;
  second.seed = 8;
  using Entry = PngText::value_type;
  const auto text = [&] {
    return text_of_picture(second, Prompt{"a", "", {}, {}}, settings, options, {input});
  };
  EXPECT_THAT(text(), testing::Contains(Entry("latents", "d.safetensors")));
  settings.num_images = 3;
  EXPECT_THAT(text(), testing::Contains(Entry("latents", "d.safetensors=2")));
}

// Sums that are not the same bits everywhere.
TEST(PictureText, NamesNativeCollectives) {
  PipelineOptions options;
  options.model = "models/demo";
  const auto named = [&] {
    for (const auto& [name, value] : text_of_picture({}, Prompt{"a", "", {}, {}}, {}, options, {}))
      if (name == "collectives") return value;
    return std::string();
  };
  EXPECT_EQ(named(), "");
  options.layout.collectives = Collectives::kNative;
  EXPECT_EQ(named(), "native");
}

}  // namespace braid::output_files_test
