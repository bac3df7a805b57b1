// `braid serve` with pictures sent by clients: the bytes of `braid generate` for the same files,
// through every API.
#include "base/base64.h"
#include "image/png.h"
#include "serving.h"

namespace braid::serve_edits_test {

class ServeEdits : public Serve {
 protected:
  ServeEdits() {
    init_ = made("in.png", 64, 48, 200);
    mask_ = made("mask.png", 64, 48, 255);
  }
  std::string made(const std::string& name, int width, int height, std::uint8_t value) const {
    std::vector<std::uint8_t> rgb(std::size_t(width) * std::size_t(height) * 3, value);
    std::fill_n(rgb.begin(), rgb.size() / 2, std::uint8_t(0));
    const auto png = encode_png(width, height, rgb);
    write(name, png);
    return png;
  }
  static std::string part(const std::string& name, const std::string& bytes,
                          const std::string& file = "") {
    return "--xx\r\ncontent-disposition: form-data; name=\"" + name + "\"" +
           (file.empty() ? "" : "; filename=\"" + file + "\"") + "\r\n\r\n" + bytes + "\r\n";
  }
  std::string edited(const std::string& parts) const {
    const auto form = parts + part("prompt", "a red circle") + part("seed", "3") +
                      part("steps", "4") + "--xx--\r\n";
    const auto files =
        pictures_in(ask("POST /v1/images/edits", form, "multipart/form-data; boundary=xx"));
    return files.empty() ? "" : files.front();
  }
  std::string drawn_from(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"a red circle", "--seed", "3", "--steps", "4"});
    return drawn(std::move(arguments), "braid.png");
  }

  std::string init_, mask_;
};

TEST_F(ServeEdits, GiveTheBytesOfGenerate) {
  start();
  EXPECT_EQ(edited(part("image", init_, "in.png")), drawn_from({"--init", "in.png"}));
  EXPECT_EQ(edited(part("image[]", init_, "in.png") + part("mask", mask_, "mask.png") +
                   part("strength", "0.5") + part("size", "32x32")),
            drawn_from({"--init", "in.png", "--mask", "mask.png", "--strength", "0.5", "--size",
                        "32x32"}));
  // Soft alpha, in another size than the drawn picture. Its file records the same of the mask.
  const auto clear =
      read_file(std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/pictures/clear.png");
  write("clear.png", clear);
  EXPECT_EQ(edited(part("image", clear, "clear.png") + part("mask", clear, "alpha") +
                   part("strength", "0.5") + part("size", "64x48")),
            drawn_from({"--init", "clear.png", "--mask", "alpha", "--strength", "0.5", "--size",
                        "64x48"}));
  EXPECT_EQ(stop().exit_code, 0);
}

// A picture without a name is called by its role.
TEST_F(ServeEdits, GiveTheSameThroughJobsAndTheWebUisClients) {
  write("init", init_);
  const auto wanted = drawn_from({"--init", "init", "--strength", "0.75"});
  start();
  const auto encoded = base64(init_);
  const nlohmann::json wish = {
      {"prompt", "a red circle"}, {"seed", 3}, {"steps", 4}, {"strength", 0.75}, {"init", encoded}};
  const auto job = nlohmann::json::parse(ask("POST /v1/jobs", wish.dump()));
  const auto path = "/v1/jobs/" + job.at("id").get<std::string>();
  ask("GET " + path + "/events");
  EXPECT_EQ(ask("GET " + path + "/pictures/0"), wanted);
  const nlohmann::json web_ui = {
      {"prompt", "a red circle"}, {"seed", 3}, {"steps", 4}, {"init_images", {encoded}}};
  const auto answer = nlohmann::json::parse(ask("POST /sdapi/v1/img2img", web_ui.dump()));
  EXPECT_EQ(serve::bytes_of_base64(answer.at("images")[0].get<std::string>(), ""), wanted);
}

// Elsewhere it passes through the autoencoder. The mask's upper half is black, as the picture's is.
TEST_F(ServeEdits, OfTheWebUisClientsKeepTheirPixelsWhereTheMaskIsBlack) {
  start();
  const auto photo = encode_png(64, 48, [] {
    std::vector<std::uint8_t> rgb(std::size_t(64) * 48 * 3);
    for (std::size_t i = 0; i < rgb.size(); ++i) rgb[i] = std::uint8_t(i * i % 251);
    return rgb;
  }());
  const auto upper_half = [](const std::string& png) {
    auto rgb = decode_png(png, "it").rgb;
    rgb.resize(rgb.size() / 2);
    return rgb;
  };
  const nlohmann::json wish = {{"prompt", "a"},
                               {"seed", 3},
                               {"steps", 4},
                               {"mask", base64(mask_)},
                               {"init_images", {base64(photo)}}};
  const auto answer = nlohmann::json::parse(ask("POST /sdapi/v1/img2img", wish.dump()));
  const auto image = serve::bytes_of_base64(answer.at("images")[0].get<std::string>(), "");
  EXPECT_EQ(upper_half(image), upper_half(photo));
  EXPECT_NE(decode_png(image, "it").rgb, decode_png(photo, "it").rgb);
}

// The engine's own sentences, as clients are told of their fields.
TEST_F(ServeEdits, AreToldWhichFieldIsWrong) {
  start();
  const auto param_of = [&](const std::string& path, const nlohmann::json& more) {
    nlohmann::json wish = {{"prompt", "a"}, {"size", "32x32"}};
    wish.update(more);
    const auto answer = nlohmann::json::parse(ask("POST " + path, wish.dump()));
    return answer.value("error", nlohmann::json::object()).value("param", nlohmann::json());
  };
  const auto generated = [&](const nlohmann::json& more) {
    return param_of("/v1/images/generations", more);
  };
  const std::vector<double> many(10'001, 0.5);
  for (const auto* const levels : {"sigmas", "base_sigmas"}) {
    EXPECT_EQ(generated({{levels, {2, 1}}}), levels);
    EXPECT_EQ(generated({{levels, {0.5, 1}}}), levels);
    EXPECT_EQ(generated({{levels, many}}), levels);
  }
  EXPECT_EQ(generated({{"guidance_rescale", 2}}), "guidance_rescale");
  EXPECT_EQ(generated({{"cfg_norm_cap", -1}}), "cfg_norm_cap");
  EXPECT_EQ(generated({{"cfg_until", 2}}), "cfg_until");
  EXPECT_EQ(generated({{"boxes", "[]"}}), "boxes");
  const auto init = base64(init_);
  const auto edited_with = [&](const nlohmann::json& more) {
    return param_of("/v1/images/edits", more);
  };
  EXPECT_EQ(edited_with({{"image", init}, {"mask", base64(made("m.png", 32, 32, 255))}}), "mask");
  EXPECT_EQ(edited_with({{"image", {init, init}}}), "image");
}

using SlowServeEdits = ServeEdits;

TEST_F(SlowServeEdits, ReachRanksThatAreProcesses) {
  const std::vector<std::string> layout = {"--tp", "2", "--dtype", "float32"};
  const auto port = free_port();
  std::vector<std::string> flags = {"serve", "--port", "0"};
  flags.insert(flags.end(), layout.begin(), layout.end());
  Subprocess other({.arguments = flags, .environment = rank_of_two(1, port), .folder = folder_});
  start(layout, rank_of_two(0, port));
  EXPECT_EQ(
      edited(part("image", init_, "in.png") + part("mask", mask_, "mask.png")),
      drawn_from({"--init", "in.png", "--mask", "mask.png", "--tp", "2", "--dtype", "float32"}));
  EXPECT_EQ(stop().exit_code, 0);
  EXPECT_EQ(other.finish().exit_code, 0);
}

}  // namespace braid::serve_edits_test
