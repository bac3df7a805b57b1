// Text in files on how pictures were made, as AUTOMATIC1111's web UI writes and reads it.
#include <gmock/gmock.h>

#include "image/exif.h"
#include "image/file_form.h"
#include "image/lossy/lossy_encode.h"
#include "image/parameters.h"
#include "image/picture_file.h"
#include "message_of.h"

namespace braid::picture_text_test {

using namespace std::literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

const PngText kText = {{"prompt", "a star ★,\nseen: \"twice\""},
                       {"negative_prompt", "blue, \U0001f600"},
                       {"seed", "18446744073709551615"},
                       {"steps", "4"},
                       {"guidance", "3.5"},
                       {"size", "64x48"},
                       {"init", "in \"1\", 2.png"},
                       {"lora", "ink.safetensors=0.8, hands.safetensors=1"},
                       {"prompt_2", "two\nlines\\"},
                       {"model", " demo"},
                       {"software", "braid 0.1"}};

std::string encoded(const std::string& format, const PngText& text) {
  const std::vector<std::uint8_t> rgb(std::size_t(17) * 9 * 3, 90);
  if (format == "png") return encode_png(17, 9, rgb, text);
  const auto exif = exif_of_comment(parameters_of(text));
  return format == "jpeg" ? encode_jpeg(17, 9, rgb, 90, exif) : encode_webp(17, 9, rgb, 90, exif);
}

TEST(Parameters, AreThoseOfTheWebUi) {
  EXPECT_EQ(parameters_of(kText),
            "a star ★,\nseen: \"twice\"\nNegative prompt: blue, \U0001f600\nSteps: 4, "
            "CFG scale: 3.5, Seed: 18446744073709551615, Size: 64x48, "
            R"(init: "in \"1\", 2.png", lora: "ink.safetensors=0.8, hands.safetensors=1", )"
            R"(prompt_2: "two\nlines\\", Model: " demo", Version: braid 0.1)");
  EXPECT_EQ(parameters_of({{"prompt", "a"}}), "a");
  EXPECT_EQ(parameters_of({{"a", "ends "}, {"b", ""}}), "\na: \"ends \", b: \"\"");
  EXPECT_EQ(parameters_of({{"comment", "no picture of Braid's"}}),
            "\ncomment: no picture of Braid's");
}

// The line of Forge's modules/processing.py, create_infotext(): of a model that takes guidance as a
// number and one of true guidance, whose scale is 1 where it is off.
TEST(Parameters, HaveForgesScalesAndSamplers) {
  struct Case {
    PngText settings;
    std::string line;
  };
  const auto of = [](PngText more) {
    PngText text = {{"prompt", "a"}, {"software", "braid 0.3"}, {"seed", "5"}, {"steps", "4"}};
    text.insert(text.end(), more.begin(), more.end());
    return text;
  };
  const std::string begin = "Steps: 4, Sampler: Euler a, Schedule type: Beta, ";
  const PngText::value_type negative("negative_prompt", "b"), embedded("guidance_kind", "embedded"),
      is_true("guidance_kind", "true"), from_0("guidance_kind", "true_from_0"),
      none("guidance_kind", "none");
  for (const auto& [settings, line] : std::vector<Case>{
           {{embedded, {"guidance", "3.5"}}, "CFG scale: 1, Distilled CFG Scale: 3.5"},
           {{negative, {"true_cfg", "2.5"}, embedded, {"guidance", "4"}},
            "CFG scale: 2.5, Distilled CFG Scale: 4"},
           {{negative, is_true, {"guidance", "4"}}, "CFG scale: 4"},
           {{is_true, {"guidance", "1"}}, "CFG scale: 1"},
           {{negative, from_0, {"guidance", "0.1"}}, "CFG scale: 1.1"},
           {{from_0, {"guidance", "0"}}, "CFG scale: 1"},
           {{none, {"guidance", "0"}}, "CFG scale: 1"},
           {{negative, {"true_cfg", "3"}, none, {"guidance", "0"}}, "CFG scale: 3"}}) {
    auto whole = of(settings);
    whole.insert(whole.end(), {{"sampler", "euler_ancestral"}, {"schedule", "beta"}});
    const auto parameters = parameters_of(whole);
    EXPECT_THAT(parameters, HasSubstr("\n" + begin + line + ", "));
    EXPECT_THAT(text_of_parameters(parameters), testing::UnorderedElementsAreArray(whole))
        << parameters;
  }
  EXPECT_THAT(parameters_of(of({{"schedule", "model"}})), HasSubstr("Schedule type: Automatic"));
  const auto odd = of({is_true, {"guidance", "0.5"}});
  EXPECT_THAT(text_of_parameters(parameters_of(odd)), testing::UnorderedElementsAreArray(odd))
      << "a number without effect";
}

// Braid 0.2 called `guidance` "CFG scale" with every model, and had its own names of samplers. Of
// its PNGs a text tells the kind by what else there is.
TEST(Parameters, OfEarlierVersionsAreRead) {
  EXPECT_THAT(text_of_parameters(
                  "a\nNegative prompt: b\nSteps: 4, true_cfg: 2, Seed: 7, Sampler: "
                  "euler_ancestral, Schedule type: beta, CFG scale: 3.5, Version: braid 0.2"),
              ElementsAre(Pair("prompt", "a"), Pair("negative_prompt", "b"), Pair("steps", "4"),
                          Pair("true_cfg", "2"), Pair("seed", "7"),
                          Pair("sampler", "euler_ancestral"), Pair("schedule", "beta"),
                          Pair("guidance", "3.5"), Pair("software", "braid 0.2")));
  const auto line_of = [](PngText more) {
    more.insert(more.begin(), {{"prompt", "a"}, {"steps", "4"}, {"guidance", "3.5"}});
    more.emplace_back("software", "braid 0.2");
    const auto parameters = parameters_of(more);
    EXPECT_THAT(text_of_parameters(parameters), testing::UnorderedElementsAreArray(more));
    return parameters;
  };
  EXPECT_THAT(line_of({}), HasSubstr("Steps: 4, CFG scale: 1, Distilled CFG Scale: 3.5, V"));
  EXPECT_THAT(line_of({{"negative_prompt", "b"}, {"true_cfg", "2"}}),
              HasSubstr("Steps: 4, CFG scale: 2, Distilled CFG Scale: 3.5, V"));
  EXPECT_THAT(line_of({{"negative_prompt", "b"}}), HasSubstr("Steps: 4, CFG scale: 3.5, V"));
}

TEST(Parameters, OfOtherProgramsKeepTheirScales) {
  const std::string line =
      "a fox\nSteps: 20, Sampler: Euler a, CFG scale: 1, Distilled CFG Scale: 3.5, Seed: 42, "
      "Version: f2.0.1v1.10.1";
  const auto text = text_of_parameters(line);
  EXPECT_THAT(text, testing::IsSupersetOf({Pair("guidance", "1"), Pair("sampler", "Euler a"),
                                           Pair("Distilled CFG Scale", "3.5")}));
  EXPECT_EQ(parameters_of(text), line);
}

// That form has no quotes around prompts.
TEST(Parameters, DivideNoPrompt) {
  for (const std::string prompt : {"x\nNegative prompt: y", "x\nSteps: 3, Seed: 4",
                                   "\nNegative prompt:", "Negative prompt: y"})
    for (const std::string negative : {"", "z\nNegative prompt: w"}) {
      PngText text = {{"prompt", prompt}};
      if (!negative.empty()) text.emplace_back("negative_prompt", negative);
      text.insert(text.end(), {{"steps", "4"}, {"seed", "5"}});
      EXPECT_EQ(text_of_parameters(parameters_of(text)), text) << parameters_of(text);
    }
  const PngText usual = {{"prompt", "a\nb"}, {"negative_prompt", "c"}, {"steps", "4"}};
  EXPECT_EQ(parameters_of(usual), "a\nb\nNegative prompt: c\nSteps: 4");
}

TEST(Parameters, OfThatProgramAreRead) {
  EXPECT_THAT(
      text_of_parameters("a cat\nNegative prompt: dog,\nbird\nSteps: 20, Sampler: Euler a, "
                         "CFG scale: 7, Seed: 1, Size: 512x512, Model: x, "
                         R"(Hashes: {"model": "00"}, Version: v1.9)"),
      testing::IsSupersetOf({Pair("prompt", "a cat"), Pair("negative_prompt", "dog,\nbird"),
                             Pair("steps", "20"), Pair("sampler", "Euler a"), Pair("guidance", "7"),
                             Pair("seed", "1"), Pair("size", "512x512"), Pair("model", "x")}));
  // It strips the line end before a negative prompt without a prompt.
  EXPECT_THAT(text_of_parameters("Negative prompt: dog\nSteps: 3"),
              ElementsAre(Pair("prompt", ""), Pair("negative_prompt", "dog"), Pair("steps", "3")));
  EXPECT_THAT(text_of_parameters("Steps: 3"), ElementsAre(Pair("prompt", ""), Pair("steps", "3")));
  EXPECT_THAT(text_of_parameters("no settings: at all"),
              ElementsAre(Pair("prompt", "no settings: at all")));
  for (const auto* const odd : {"Steps: \"", "Steps: \"\\", "Steps: ", "Steps: 1, ", "Steps: 1, x"})
    EXPECT_THAT(text_of_parameters(odd).front(), Pair("prompt", "")) << odd;
}

// piexif 1.1.3 wrote this, called as that program does: dump({"Exif": {UserComment:
// UserComment.dump( "a é\U0001f600", "unicode")}}), without its name.
TEST(Exif, OfThatProgramAreRead) {
  const auto tiff =
      "MM\0*"
      "\0\0\0\x08\0\x01\x87\x69\0\x04\0\0\0\x01\0\0\0\x1a\0\0\0\0\0\x01\x92\x86\0\x07\0\0\0\x12"
      "\0\0\0\x28UNICODE\0\0a\0 \0\xe9\xd8\x3d\xde\0"s;
  EXPECT_EQ(exif_comment(tiff), "a é\U0001f600");
  for (std::size_t size = 0; size < tiff.size(); ++size)
    EXPECT_EQ(exif_comment(tiff.substr(0, size)).value_or(""), "") << size;
  auto ascii = tiff;
  ascii.replace(40, 8, "ASCII\0\0\0"sv);
  ascii.replace(48, 10, "0123456789");
  EXPECT_EQ(exif_comment(ascii), "0123456789");
  constexpr std::size_t kAsUtf16 = 72;  // bytes
  EXPECT_EQ(exif_of_comment("0123456789", kAsUtf16), exif_of_comment("0123456789"));
  EXPECT_THAT(exif_of_comment("0123456789", kAsUtf16 - 1),
              testing::EndsWith("\0\0\0\x12\0\0\0\x2c\0\0\0\0ASCII\0\0\0"
                                "0123456789"s));
  EXPECT_EQ(exif_of_comment("a é", 1), exif_of_comment("a é")) << "it is not ASCII";
  ascii[50] = '\xe9';
  EXPECT_EQ(exif_comment(ascii), std::nullopt);
}

TEST(Exif, KeepHalfCharactersOut) {
  auto tiff = exif_of_comment("\U0001f600");
  ASSERT_EQ(exif_comment(tiff), "\U0001f600");
  EXPECT_EQ(exif_comment(tiff.replace(tiff.size() - 2, 1, "\xd8")), "��");
  EXPECT_THAT(message_of([] { exif_of_comment("\xff"); }), HasSubstr("not UTF-8"));
}

class PictureText : public testing::TestWithParam<std::string> {};

TEST_P(PictureText, ComesBack) {
  const auto file = encoded(GetParam(), kText);
  EXPECT_THAT(read_picture_text(file, "it"), testing::UnorderedElementsAreArray(kText));
  const auto without = encoded(GetParam(), {});
  const auto picture = decode_picture(file, "it");
  EXPECT_EQ(picture.rgb, decode_picture(without, "it").rgb);
  EXPECT_EQ(std::pair(picture.width, picture.height), std::pair(17, 9));
}

TEST_P(PictureText, OfACutFileIsNoText) {
  const auto file = encoded(GetParam(), kText);
  const auto whole = read_picture_text(file, "it");
  for (std::size_t size = 12; size < file.size(); ++size) {
    PngText text;
    message_of([&] { text = read_picture_text(file.substr(0, size), "it"); });
    EXPECT_TRUE(text.empty() || text == whole) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, PictureText, testing::Values("png", "jpeg", "webp"),
                         [](const auto& info) { return info.param; });

TEST(PictureText, ThatAJpegHasNoRoomForStaysOut) {
  const auto prompt = [](std::size_t length) {
    return PngText{{"prompt", std::string(length, 'a')}};
  };
  EXPECT_EQ(read_picture_text(encoded("jpeg", prompt(32737)), ""), prompt(32737));
  EXPECT_TRUE(read_picture_text(encoded("jpeg", prompt(32738)), "").empty());
  EXPECT_EQ(read_picture_text(encoded("webp", prompt(40001)), ""), prompt(40001));
}

// The prompt gives way, not the settings.
TEST(PictureText, IsCutWhereAJpegHasNoRoomForIt) {
  const std::vector<std::uint8_t> rgb(3);
  using Format = FileForm::Format;
  const auto text = [](const std::string& prompt) {
    return PngText{{"prompt", prompt}, {"negative_prompt", "blue"}, {"steps", "4"}};
  };
  const auto of_jpeg = [&](const PngText& whole) {
    return read_picture_text(encoded(FileForm{.format = Format::kJpeg}, 1, 1, rgb, whole), "it");
  };
  const auto fits = text(std::string(60'000, 'a'));
  EXPECT_FALSE(is_text_cut({.format = Format::kJpeg}, fits));
  EXPECT_EQ(of_jpeg(fits), fits) << "in ASCII";
  std::string accents, foxes, faces;
  for (int i = 0; i < 40'000; ++i) {
    accents += "é";
    foxes += "狐";
    faces += "\U0001f600";
  }
  // EXIF has UTF-16: 65,527 bytes hold 32,700 characters of either of two.
  for (const auto& [prompt, fewest] : {std::pair(std::string(90'000, 'a'), 65'000),
                                       {accents, 2 * 32'700},
                                       {foxes, 3 * 32'700},
                                       {faces, 4 * 16'350}}) {
    const auto whole = text(prompt);
    EXPECT_TRUE(is_text_cut({.format = Format::kJpeg}, whole));
    const auto read = of_jpeg(whole);
    ASSERT_EQ(read.size(), 3u);
    const auto& cut = read.front().second;
    EXPECT_THAT(cut, testing::EndsWith("..."));
    EXPECT_GT(cut.size(), std::size_t(fewest));
    EXPECT_TRUE(prompt.starts_with(cut.substr(0, cut.size() - 3)));
    EXPECT_EQ(PngText(read.begin() + 1, read.end()), PngText(whole.begin() + 1, whole.end()));
    for (const auto format : {Format::kPng, Format::kWebp}) {
      EXPECT_FALSE(is_text_cut({.format = format}, whole));
      EXPECT_THAT(read_picture_text(encoded(FileForm{.format = format}, 1, 1, rgb, whole), "it"),
                  testing::UnorderedElementsAreArray(whole));
    }
  }
}

// What else reads PNGs looks for this, as JPEGs and WebPs have it: PngImagePlugin of Pillow gives
// the web UI its info["parameters"].
TEST(PictureText, OfAPngIsThereInTheWebUisWordsToo) {
  const std::vector<std::uint8_t> rgb(3);
  const auto png_with = [&](const PngText& text) { return encoded(FileForm{}, 1, 1, rgb, text); };
  const auto png = png_with(kText);
  auto both = kText;
  both.emplace_back("parameters", parameters_of(kText));
  EXPECT_EQ(read_png_text(png, "it"), both);
  EXPECT_EQ(readable_picture_text(png, "it"), both) << "to be written again";
  EXPECT_EQ(read_png_text(png_with(both), "it"), both) << "once";
  EXPECT_EQ(read_picture_text(png, "it"), kText) << "the text itself says more";
  const PngText of_others = {{"prompt", "a graph"}, {"parameters", "a fox"}};
  EXPECT_EQ(read_picture_text(png_with(of_others), "it"), of_others);
  EXPECT_EQ(read_png_text(png_with({{"prompt", "a"}}), "it"), PngText({{"prompt", "a"}}));
}

TEST(PictureText, OfAPngIsNeverMoreThanIsRead) {
  const std::vector<std::uint8_t> rgb(3);
  for (const auto& [length, entries] : {std::pair(500'000u, 4u), {600'000u, 3u}}) {
    const PngText text = {
        {"prompt", std::string(length, 'a')}, {"steps", "4"}, {"software", "braid 0.3"}};
    EXPECT_EQ(read_png_text(encoded(FileForm{}, 1, 1, rgb, text), "it").size(), entries) << length;
  }
}

TEST(PictureText, IsOfPicturesAlone) {
  EXPECT_THAT(message_of([] { read_picture_text("a text", "it"); }), HasSubstr("none of these"));
}

}  // namespace braid::picture_text_test
