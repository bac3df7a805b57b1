// Paths and base64, for whatever clients send.
#include "serve/http.h"

#include <gtest/gtest.h>

#include <array>

#include "serve/api/access.h"
#include "serve/api_error.h"

namespace braid::serve::http_test {

TEST(Target, HasAPathAndParameters) {
  HttpRequest request;
  read_target("/v1/a+b%20x?user=a+b%26c&empty&=d&user2=%e2%98%85", request);
  EXPECT_EQ(request.path, "/v1/a+b x") << "a plus is a space in parameters alone";
  EXPECT_EQ(request.parameter("user"), "a b&c");
  EXPECT_EQ(request.parameter("empty"), "");
  EXPECT_EQ(request.parameter("user2"), "\xe2\x98\x85");
}

TEST(Target, IsRefusedWhereItIsNone) {
  HttpRequest request;
  for (const auto* const target : {"", "v1", "https://localhost/", "http:/localhost/", "*", "/%",
                                   "/%4", "/%4g", "/a?b=%", "/a%00b"})
    EXPECT_THROW(read_target(target, request), ApiError) << target;
  std::string many = "/?";
  for (int i = 0; i < 100; ++i) many += std::to_string(i) + "=1&";
  EXPECT_THROW(read_target(many, request), ApiError);
}

// RFC 9112, section 3.2.2: as clients send it that take the server for a proxy.
TEST(Target, MayBeAbsolute) {
  for (const auto& [target, host, path, parameter] : std::vector<std::array<std::string, 4>>{
           {"http://localhost:8188/v1/jobs?a=%41", "localhost:8188", "/v1/jobs", "A"},
           {"HTTP://[::1]:8188?a=b", "[::1]:8188", "/", "b"},
           {"http://evil.example", "evil.example", "/", ""}}) {
    HttpRequest request;
    request.headers["host"] = "localhost";
    read_target(target, request);
    EXPECT_EQ(request.header("host"), host) << "the header does not count";
    EXPECT_EQ(request.path, path);
    EXPECT_EQ(request.parameter("a"), parameter);
  }
  for (const auto* const target : {"http://", "http:///livez", "http://?a", "http://me@localhost/",
                                   "http://localhost@evil/"}) {
    HttpRequest request;
    request.headers["host"] = "localhost";
    EXPECT_THROW(read_target(target, request), ApiError) << target;
  }
  HttpRequest request;
  EXPECT_THROW(read_target("http://localhost/", request), ApiError) << "without the header";
}

// RFC 4648, section 10
TEST(Base64, IsThatOfTheRfc) {
  for (const auto& [bytes, text] :
       std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                        {"f", "Zg=="},
                                                        {"fo", "Zm8="},
                                                        {"foo", "Zm9v"},
                                                        {"foob", "Zm9vYg=="},
                                                        {"fooba", "Zm9vYmE="},
                                                        {"foobar", "Zm9vYmFy"},
                                                        {"\xff\xfe", "//4="}}) {
    EXPECT_EQ(base64(bytes), text);
    EXPECT_EQ(bytes_of_base64(text, "image"), bytes);
    EXPECT_EQ(bytes_of_base64("data:image/png;base64," + text, "image"), bytes);
  }
  EXPECT_EQ(bytes_of_base64("Zm9v\r\nYmE=\n", "image"), "fooba") << "in lines, as base64(1) writes";
  EXPECT_THROW(bytes_of_base64("Zm 9v", "image"), ApiError);
}

TEST(Secrets, AreTheSameOrNot) {
  EXPECT_TRUE(is_same_secret("secret", "secret"));
  EXPECT_FALSE(is_same_secret("secret", "secre"));
  EXPECT_FALSE(is_same_secret("secre", "secret"));
  EXPECT_FALSE(is_same_secret("", "secret"));
  EXPECT_FALSE(is_same_secret("secretsecret", "secret"));
}

}  // namespace braid::serve::http_test
