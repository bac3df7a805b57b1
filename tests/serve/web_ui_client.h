// A client of the web UI's endpoints, with pictures to send.
#pragma once

#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/sha256.h"
#include "image/picture_file.h"
#include "serve/body/fields.h"
#include "test_server.h"

namespace braid::serve {

class WebUi : public testing::Test {
 protected:
  std::string post(const std::string& path, const nlohmann::json& wish) const {
    return server_.ask("POST /sdapi/v1/" + path, "", wish.dump());
  }
  nlohmann::json get(const std::string& path) const {
    const auto answer = server_.ask("GET /sdapi/v1/" + path);
    EXPECT_EQ(status_of(answer), 200) << answer;
    return json_of(answer);
  }
  static Pixels noise(int width, int height) {
    Pixels picture{.width = width, .height = height, .rgb = {}};
    picture.rgb.resize(std::size_t(width) * std::size_t(height) * 3);
    for (std::uint64_t i = 0; i < picture.rgb.size(); ++i)
      picture.rgb[i] = std::uint8_t((i * i * 31 + i * 7) % 65537 % 256);
    return picture;
  }
  static std::string file_of(const Pixels& picture) {
    return base64(encode_png(picture.width, picture.height, picture.rgb));
  }
  static std::string digits_of(const Pixels& picture) {
    const auto& rgb = picture.rgb;
    return sha256_hex({reinterpret_cast<const char*>(rgb.data()), rgb.size()}).substr(0, 16);
  }
  static Pixels made(const nlohmann::json& image) {
    return decode_picture(bytes_of_base64(image.get<std::string>(), ""), "");
  }

  FakeEngine engine_;
  Server server_{engine_};
};

}  // namespace braid::serve
