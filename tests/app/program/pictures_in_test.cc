// `braid generate` from pictures: what it reports of them, and what it refuses.
#include <csignal>

#include "base/file.h"
#include "base/sha256.h"
#include "has_match.h"
#include "image/make_png.h"
#include "image/png.h"
#include "workplace.h"

namespace braid::pictures_in_test {

using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

class PicturesIn : public Workplace {
 protected:
  // A picture of a single colour.
  std::string make(const std::string& name, int width, int height, std::uint8_t value) const {
    const std::vector<std::uint8_t> rgb(std::size_t(width) * std::size_t(height) * 3, value);
    return write(name, encode_png(width, height, rgb)).string();
  }
  void expect_refused(std::vector<std::string> arguments, const std::string& words) const {
    arguments.insert(arguments.begin(), {"generate", "a"});
    expect_bad_input(std::move(arguments), words);
  }
};

TEST_F(PicturesIn, AreNamedInTheFile) {
  make("photo.in", 40, 32, 200);
  make("mask.in", 40, 32, 255);
  const auto finished = draw({"a", "--init", "photo.in", "--mask", "mask.in", "--strength", "0.5",
                              "--size", "48x32", "--steps", "4"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("the initial picture is resized from 40x32 to 48x32 pixels"));
  EXPECT_THAT(finished.err, HasMatch("denoise +2 steps"));
  const auto text = read_png_text(read_file(folder_ / "braid.png"), "braid.png");
  const auto digest = sha256_hex(read_file(folder_ / "photo.in"));
  EXPECT_THAT(text, Contains(Pair("init", "photo.in")));
  EXPECT_THAT(text, Contains(Pair("init_sha256", digest)));
  EXPECT_THAT(text, Contains(Pair("mask", "mask.in")));
  EXPECT_THAT(text, Contains(Pair("strength", "0.5")));
}

// White strokes on a transparent layer, as painting programs save them.
TEST_F(PicturesIn, WithAMeaningAreTakenWithoutTheirTransparency) {
  make("photo.in", 64, 64, 230);
  std::string layer;
  std::vector<std::uint8_t> rgb;
  for (int y = 0; y < 64; ++y) {
    layer += '\0';
    for (int x = 0; x < 64; ++x) {
      layer += x < 32 ? std::string(4, '\0') : "\xff\xff\xff\x80";
      rgb.insert(rgb.end(), 3, x < 32 ? 0 : 255);
    }
  }
  write("layer.in", png_of(ihdr(64, 64, 8, 6), layer));
  write("opaque.in", encode_png(64, 64, rgb));
  const auto latents = [&](const std::string& mask) {
    EXPECT_EQ(draw({"a", "--init", "photo.in", "--mask", mask, "--strength", "0.8", "--dump", "d",
                    "--size", "64x64"})
                  .exit_code,
              0);
    return read_file(folder_ / "d");
  };
  EXPECT_EQ(latents("layer.in"), latents("opaque.in"));
}

TEST_F(PicturesIn, GiveTheirSize) {
  make("photo.in", 50, 33, 200);
  const auto finished = braid({"generate", "a", "--init", "photo.in", "--steps", "2"});
  EXPECT_THAT(finished.err, HasSubstr("the width 50 is rounded down to 48"));
  const auto made = decode_png(read_file(folder_ / "braid.png"), "braid.png");
  EXPECT_EQ(std::pair(made.width, made.height), std::pair(48, 32));
}

// Where the mask is black, the picture comes back through the autoencoder; white is drawn.
TEST_F(PicturesIn, StayWhereTheMaskIsBlack) {
  make("photo.in", 64, 64, 230);
  make("black.in", 64, 64, 0);
  make("white.in", 64, 64, 255);
  const std::string kBlack = "the mask is black: nothing of the picture is redrawn";
  const auto mean = [&](const std::string& mask) {
    const auto finished =
        braid({"generate", "a black square", "--init", "photo.in", "--mask", mask, "--strength",
               "1", "--size", "64x64", "--steps", "2", "--overwrite", "always"});
    EXPECT_EQ(finished.err.find(kBlack) != std::string::npos, mask == "black.in") << finished.err;
    const auto made = decode_png(read_file(folder_ / "braid.png"), "braid.png");
    double sum = 0;
    for (const auto value : made.rgb) sum += value;
    return sum / double(made.rgb.size());
  };
  EXPECT_NEAR(mean("black.in"), 230, 15);
  EXPECT_LT(mean("white.in"), 200);
}

// The mask's region is drawn enlarged, and pasted back into a picture of --init's size.
TEST_F(PicturesIn, AreDrawnWhereTheyAreTransparent) {
  write("clear.in", read_file(std::filesystem::path(BRAID_SOURCE_DIR) /
                              "tests/data/pictures/clear.png"));  // 17 x 9 pixels
  const auto finished =
      draw({"a black square", "--init", "clear.in", "--mask", "alpha", "--mask-blur", "1.5",
            "--padding-crop", "2", "--strength", "1", "--size", "64x64", "--steps", "2", "--json"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("\"padding_crop\": 2"));
  EXPECT_THAT(finished.out, HasSubstr("\"strength\": 1"));
  EXPECT_THAT(finished.out, HasSubstr("\"name\": \"clear.in\""));
  const auto png = read_file(folder_ / "braid.png");
  const auto text = read_png_text(png, "braid.png");
  EXPECT_THAT(text, Contains(Pair("mask", "alpha")));
  EXPECT_THAT(text, Contains(Pair("mask_blur", "1.5")));
  EXPECT_THAT(text, Contains(Pair("padding_crop", "2")));
  EXPECT_THAT(text, Contains(Pair("size", "64x64"))) << "as --size says it";
  const auto made = decode_png(png, "braid.png");
  EXPECT_EQ(std::pair(made.width, made.height), std::pair(17, 9));
}

TEST_F(PicturesIn, AreRefusedBeforeTheModelIsLoaded) {
  const auto photo = make("photo.in", 40, 32, 200), other = make("other.in", 32, 32, 0);
  expect_refused({"--init", photo, "--strength", "1.5"},
                 "the strength should lie between 0 and 1, it is 1.5");
  expect_refused({"--init", photo, "--strength", "0"}, "a strength of 0 leaves none of");
  expect_refused({"--init", photo, "--mask", other}, "40x32, it has 32x32");
  expect_refused({"--mask", other}, "a mask needs an initial picture");
  expect_refused({"--mask", "alpha"}, "--mask alpha needs --init");
  expect_refused({"--init", photo, "--mask", "alpha"},
                 "should have transparent pixels, it has none");
  expect_refused({"--init", photo, "--mask", photo, "--mask-blur", "-1"},
                 "the blur of the mask should lie between 0 and 1000 pixels, it is -1");
  expect_refused({"--mask-blur", "3"}, "the blur of a mask needs a mask");
  expect_refused({"--padding-crop", "3"}, "padding around a mask needs a mask");
  expect_refused({"--init", photo, "--mask", make("black.in", 40, 32, 0), "--padding-crop", "3"},
                 "the mask is black");
  expect_refused({"--reference-cache", "on"}, "--reference-cache should be one of auto, off");
  expect_refused({"--strength", "0.5"}, "a strength needs an initial picture");
  expect_refused({"--reference", photo}, "this model looks at no references, 1 was given");
  expect_refused({"--control", photo}, "this model follows no control picture");
  expect_refused({"--init", photo, "--max-pixels", "1000"}, "40x32 pixels, at most 1000 are read");
}

TEST_F(PicturesIn, ThatControlNetsFollowAreNamedInTheFile) {
  make("edges.in", 40, 32, 200);
  const auto model =
      std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity/controlnets/model";
  const auto finished = draw({"a", "-m", model.string(), "--controlnet",
                              (model / "controlnet_2").string(), "--control", "edges.in",
                              "--control-scale", "0.5", "--control-to", "0.75", "--steps", "2"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const auto text = read_png_text(read_file(folder_ / "braid.png"), "braid.png");
  EXPECT_THAT(text, Contains(Pair("control_1", "edges.in")));
  EXPECT_THAT(text, Contains(Pair("control_1_net", "controlnet_2")));
  EXPECT_THAT(text, Contains(Pair("control_1_scale", "0.5")));
  EXPECT_THAT(text, Contains(Pair("control_1_to", "0.75")));
}

TEST_F(PicturesIn, AreFilledInByAControlNet) {
  const auto photo = make("photo.in", 80, 64, 200), mask = make("mask.in", 80, 64, 255);
  const auto fixtures = std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity";
  const auto model = (fixtures / "qwen-image-inpaint/model").string();
  const auto net = model + "/controlnet_1",
             follows = (fixtures / "qwen-image-control/model/controlnet_1").string();
  const auto finished =
      draw({"a", "-m", model, "--controlnet", net, "--init", photo, "--mask", mask,
            "--control-scale", "0.5", "--control-from", "0.25", "--steps", "2", "--size", "80x64"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const auto text = read_png_text(read_file(folder_ / "braid.png"), "braid.png");
  EXPECT_THAT(text, Contains(Pair("init", "photo.in")));
  EXPECT_THAT(text, Contains(Pair("mask", "mask.in")));
  EXPECT_THAT(text, Contains(Pair("control_1_net", "controlnet_1")));
  EXPECT_THAT(text, Contains(Pair("control_1_scale", "0.5")));
  EXPECT_THAT(text, Contains(Pair("control_1_from", "0.25")));
  EXPECT_THAT(text, testing::Not(Contains(Pair("strength", testing::_))));
  std::filesystem::remove(folder_ / "braid.png");
  const auto refused = [&](const std::string& with, std::vector<std::string> more,
                           const std::string& words) {
    more.insert(more.begin(), {"-m", model, "--controlnet", with});
    expect_refused(more, words);
  };
  const std::string needs =
      "--controlnet needs --control, the picture that it follows, or --init "
      "and --mask, the picture that it fills in";
  refused(net, {}, needs);
  refused(net, {"--init", photo}, needs);
  refused(net, {"--mask", mask}, needs);
  refused(net, {"--init", photo, "--mask", mask, "--control", photo},
          "the ControlNet fills the initial picture in: it follows no control picture");
  refused(net, {"--control", photo},
          "the ControlNet fills the initial picture in: it follows no control picture");
  refused(net, {"--init", photo, "--mask", mask, "--control-scale", "1", "--control-scale", "1"},
          "--control-scale is given 2 times");
  refused(net, {"--init", photo, "--mask", mask, "--controlnet", follows},
          "fills pictures in: it cannot be used together with others");
  refused(follows, {"--init", photo, "--mask", mask},
          "--controlnet needs --control: it follows a picture, and fills none in");
  refused(follows, {"--init", photo, "--mask", mask, "--control-scale", "0.5"},
          "the ControlNet needs a control picture to follow: it fills none in");
  expect_refused({"--init", photo, "--mask", mask, "--control-scale", "1"},
                 "--control-scale needs --control");
}

TEST_F(PicturesIn, AreRefusedWhereNoControlNetFitsThem) {
  const auto photo = make("photo.in", 40, 32, 200);
  const auto model =
      std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity/controlnets/model";
  const auto net = (model / "controlnet_2").string();
  expect_refused({"--controlnet", net}, "--controlnet needs --control, the picture");
  expect_refused({"--redux", net}, "--redux needs --reference, the picture");
  expect_refused({"--reference", photo, "--redux", "nowhere"},
                 "there is no directory of Redux at nowhere");
  expect_refused({"--reference", photo, "--redux", net},
                 "is not the directory of Redux: it has no image_encoder/config.json");
  expect_refused({"--control-scale", "1"}, "--control-scale needs --control");
  expect_refused({"--control", photo, "--control-to", "1", "--control-to", "1"},
                 "--control-to is given 2 times, --control 1 time");
  expect_refused({"--control", photo, "--controlnet", "nowhere"},
                 "there is no directory of a ControlNet at nowhere");
  expect_refused({"--control", photo, "--controlnet", folder_.string()}, "it has no config.json");
  expect_refused({"--control", photo, "--controlnet", (model / "transformer").string()},
                 "is a FluxTransformer2DModel, not a ControlNet");
  expect_refused({"--control", photo, "--controlnet", net}, "has tokens of width 16, the ");
  expect_refused(
      {"-m", (std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity/klein/model").string(),
       "--control", photo, "--controlnet", net},
      "a Flux2KleinPipeline takes no ControlNets");
  expect_refused(
      {"-m", model.string(), "--control", photo, "--controlnet", net, "--control-mode", "1"},
      "ControlNet 1 follows one kind of pictures: its mode is 0, not 1");
}

using SlowPicturesIn = PicturesIn;

TEST_F(SlowPicturesIn, MayComeThroughPipes) {
  const auto photo = read_file(std::filesystem::path(BRAID_SOURCE_DIR) /
                               "tests/data/pictures/clear.png");  // 17 x 9 pixels
  write("photo.in", photo);
  const std::vector<std::string> settings = {"--size", "32x32", "--steps", "2", "-o", "-"};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"generate", "a"});
    arguments.insert(arguments.end(), settings.begin(), settings.end());
    return arguments;
  };
  const auto pixels = [](const Finished& finished) {
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return decode_png(finished.out, "it").rgb;
  };
  const auto wanted = pixels(braid(with({"--init", "photo.in"})));
  const auto input =
      Subprocess({.arguments = with({"--init", "-"}), .folder = folder_, .input = photo}).finish();
  EXPECT_EQ(pixels(input), wanted);
  EXPECT_THAT(read_png_text(input.out, "it"), Contains(Pair("init_sha256", sha256_hex(photo))));
  const auto piped = [&](std::vector<std::string> arguments) {
    return run_in_shell("cat photo.in | \"$0\" \"$@\"", with(std::move(arguments)), folder_);
  };
  EXPECT_EQ(pixels(piped({"--init", "/dev/stdin"})), wanted);
  EXPECT_EQ(pixels(piped({"--init", "/dev/stdin", "--mask", "alpha"})),
            pixels(braid(with({"--init", "photo.in", "--mask", "alpha"}))));
  expect_refused({"--init", "-", "--mask", "-"}, "--init and --mask both read standard input");
  expect_refused({"--init", "https://host/a.png"}, "is an address: download it first");
  expect_refused({"--latents", "https://host/a"}, "is an address: download it first");
}

TEST_F(PicturesIn, ThatDoNotComeAreWaitedForNoLongerThanWanted) {
  Subprocess running({.arguments = {"generate", "a", "--init", "-"},
                      .folder = folder_,
                      .input = "\x89PNG",
                      .keep_input_open = true});
  running.wait_until_input_is_read();
  running.send(SIGINT);
  EXPECT_EQ(running.finish().exit_code, -SIGINT);
}

TEST_F(PicturesIn, AreRefusedWhereTheyAreNone) {
  const auto whole = read_file(make("photo.in", 40, 32, 200));
  const auto text = write("text.in", "not a picture").string();
  const auto cut = write("cut.in", whole.substr(0, whole.size() / 2)).string();
  expect_refused({"--init", "missing.in"}, "missing.in");
  expect_refused({"--init", text}, "should be a PNG, JPEG or WebP picture, it is none of these");
  expect_refused({"--init", cut}, "cut.in is a damaged PNG");
  expect_refused({"--init="}, "--init should be a path, it is empty");
}

}  // namespace braid::pictures_in_test
