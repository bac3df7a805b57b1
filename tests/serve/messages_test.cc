// Paths, and base64 as clients send it.
#include "serve/messages.h"
#include "serve/body/fields.h"

#include <gtest/gtest.h>

#include <array>

#include "message_of.h"
#include "serve/api/access.h"
#include "serve/api_error.h"

namespace braid::serve::messages_test {

TEST(Target, HasAPathAndParameters) {
  HttpRequest request;
  const auto* const target = "/v1/a+b%20x?user=a+b%26c&empty&=d&user2=%e2%98%85";
  read_target(target, request);
  read_query(target, request);
  EXPECT_EQ(request.path, "/v1/a+b x") << "a plus is a space in parameters alone";
  EXPECT_EQ(request.parameter("user"), "a b&c");
  EXPECT_EQ(request.parameter("empty"), "");
  EXPECT_EQ(request.parameter("user2"), "\xe2\x98\x85");
}

TEST(Target, IsRefusedWhereItIsNone) {
  HttpRequest request;
  for (const auto* const target :
       {"", "v1", "https://localhost/", "http:/localhost/", "*", "/%", "/%4", "/%4g", "/a%00b"})
    EXPECT_THROW(read_target(target, request), ApiError) << target;
}

TEST(Target, HasItsQueryReadAlone) {
  HttpRequest request;
  read_target("/a?b=%", request);
  EXPECT_EQ(request.path, "/a");
  EXPECT_THROW(read_query("/a?b=%", request), ApiError);
  std::string many = "/?";
  for (int i = 0; i < 100; ++i) many += std::to_string(i) + "=1&";
  EXPECT_THROW(read_query(many, request), ApiError);
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
    read_query(target, request);
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

TEST(ErrorsOfClients, GoOnBehindANul) {
  const std::string name("a\0b", 3);
  EXPECT_STREQ(ApiError(404, "there is no model '" + name + "'").what(), "there is no model 'a b'");
}

TEST(Base64OfClients, MayBeADataUrl) {
  for (const auto* const text :
       {"Zm9vYmE=", "data:image/png;base64,Zm9vYmE=", "DATA:image/png;charset=x;BASE64,Zm9vYmE="})
    EXPECT_EQ(bytes_of_base64(text, "image"), "fooba") << text;
  for (const auto* const text : {"Zm%9v", "data:image/png,Zm9v", "data:base64", "data:base64,Zm9v"})
    EXPECT_THROW(bytes_of_base64(text, "image"), ApiError) << text;
}

// RFC 2397: what follows the comma is escaped as in all URLs. WHATWG Fetch, "data: URL processor":
// spaces before "base64", around the head, and within the data.
TEST(Base64OfClients, IsReadAsBrowsersDo) {
  for (const auto* const text :
       {"data:image/png;base64,Zm9vYmE%3D",
        "data:image/png;base64,%5am%39v%0AYmE=", "data:image/png; base64,Zm9vYmE=",
        "data:image/png;base64 ,Zm9vYmE=", " data:;base64, Zm9v\tYmE=", "\n Zm9v\f YmE= "})
    EXPECT_EQ(bytes_of_base64(text, "image"), "fooba") << text;
}

TEST(Base64OfClients, IsRefusedWithTheCharacterAtFault) {
  const auto refusal = [](const std::string& text) {
    return message_of<ApiError>([&] { (void)bytes_of_base64(text, "image"); });
  };
  const std::string begin = "'image' should be base64: ";
  EXPECT_EQ(refusal("Zm#v"), begin + "character 3 is '#'");
  EXPECT_EQ(refusal("Zm%3Dv"), begin + "character 3 is '%'") << "it is no URL";
  EXPECT_EQ(refusal("data:;base64,Zm%v"), begin + "character 3 is '%'") << "it is no escape";
  EXPECT_EQ(refusal("Zm9v\xc3\xa9"), begin + "character 5 is '\xc3\xa9'");
  EXPECT_EQ(refusal("Zm9v\x01v"), begin + "character 5 is byte 0x01");
  EXPECT_EQ(refusal("Zm9vY"), begin + "it is cut, its last character is part of no byte");
}

TEST(Secrets, AreTheSameOrNot) {
  EXPECT_TRUE(is_same_secret("secret", "secret"));
  EXPECT_FALSE(is_same_secret("secret", "secre"));
  EXPECT_FALSE(is_same_secret("secre", "secret"));
  EXPECT_FALSE(is_same_secret("", "secret"));
  EXPECT_FALSE(is_same_secret("secretsecret", "secret"));
}

}  // namespace braid::serve::messages_test
