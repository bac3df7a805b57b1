// A client of the web UI's endpoints, with pictures to send.
#pragma once

#include <gtest/gtest.h>

#include "base/base64.h"
#include "image/picture_file.h"
#include "pictures.h"
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
  static std::string file_of(const Pixels& picture) {
    return base64(encode_png(picture.width, picture.height, picture.rgb));
  }
  static Pixels made(const nlohmann::json& image) {
    return decode_picture(bytes_of_base64(image.get<std::string>(), ""), "");
  }

  FakeEngine engine_;
  Server server_{engine_};
};

}  // namespace braid::serve
