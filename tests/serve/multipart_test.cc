// Forms as clients send them, and malformed ones.
#include "serve/body/multipart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/api_error.h"

namespace braid::serve::multipart_test {

using testing::HasSubstr;

constexpr const char* kType = "multipart/form-data; boundary=xx";

std::string complaint(const std::string& body, const std::string& type = kType) {
  try {
    read_multipart(body, type);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 400);
    return error.what();
  }
  return "";
}

TEST(Multipart, HasFieldsAndFiles) {
  const std::string body =
      "--xx\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\na\r\nfox\r\n"
      "--xx\r\ncontent-disposition: form-data; name=\"image[]\"; filename=\"C:\\\\b/c.png\"\r\n"
      "Content-Type: image/png\r\n\r\n\x89PNG\r\n--x\r\n--xx\r\n"
      "Content-Disposition: form-data; name=\"empty\"\r\n\r\n\r\n--xx--\r\n";
  const auto parts = read_multipart(body, kType);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].name, "prompt");
  EXPECT_EQ(parts[0].bytes, "a\r\nfox");
  EXPECT_FALSE(parts[0].is_file);
  EXPECT_EQ(parts[1].name, "image[]");
  EXPECT_TRUE(parts[1].is_file);
  EXPECT_EQ(parts[1].file, "c.png") << "no folders";
  EXPECT_EQ(parts[1].bytes, "\x89PNG\r\n--x");
  EXPECT_EQ(parts[2].bytes, "");
}

TEST(Multipart, ReadsHeadsAsTheyAreWritten) {
  const auto part_of = [](const std::string& header) {
    return read_multipart("a preamble\r\n--b b  \r\n" + header + "\r\n\r\nx\r\n--b b--",
                          "Multipart/Form-Data; charset=utf-8; boundary=\"b b\"")
        .front();
  };
  EXPECT_EQ(part_of("Content-Disposition:form-data;name=a;filename=b.png").file, "b.png");
  EXPECT_EQ(part_of("Content-Disposition: form-data; name=\"a%22b\"").name, "a\"b");
  EXPECT_EQ(part_of("Content-Disposition: form-data; name=\"a\\\"b\"").name, "a\"b");
  EXPECT_EQ(part_of("X-Other: 1\r\nContent-Disposition: form-data; name=a").name, "a");
}

TEST(Multipart, KnowsAPictureWithoutAFileName) {
  const auto part_of = [](const std::string& header) {
    return read_multipart("--xx\r\n" + header + "\r\n\r\n\x89\xff\r\n--xx--", kType).front();
  };
  const std::string named = "Content-Disposition: form-data; name=a";
  EXPECT_TRUE(part_of("Content-Type: Image/PNG\r\n" + named).is_file);
  EXPECT_TRUE(part_of(named + "\r\nContent-Type: image/png").is_file);
  EXPECT_TRUE(part_of(named + "; filename*=utf-8''%E2%98%85.png").is_file);
  EXPECT_EQ(part_of(named + "; filename=b.png; filename*=utf-8''%E2%98%85.png").file, "b.png");
  EXPECT_FALSE(part_of(named + "\r\nContent-Type: text/plain; charset=utf-8").is_file);
}

// HTML has browsers send a file with an empty name and no bytes where nobody chose one.
TEST(Multipart, KnowsAFileThatNobodyChose) {
  const auto is_unchosen = [](const std::string& header, const std::string& bytes = "") {
    const auto body = "--xx\r\nContent-Disposition: form-data; name=a" + header + "\r\n\r\n" +
                      bytes + "\r\n--xx--";
    return read_multipart(body, kType).front().is_unchosen;
  };
  EXPECT_TRUE(is_unchosen("; filename=\"\"\r\nContent-Type: application/octet-stream"));
  EXPECT_TRUE(is_unchosen("; filename=\"\""));
  EXPECT_FALSE(is_unchosen("; filename=\"\"", "x"));
  EXPECT_FALSE(is_unchosen("; filename=a.png"));
  EXPECT_FALSE(is_unchosen("; filename=" + std::string(300, 'x'))) << "too long a name is dropped";
  EXPECT_FALSE(is_unchosen("\r\nContent-Type: image/png"));
  EXPECT_FALSE(is_unchosen(""));
}

// RFC 7578, 4.6 and 4.7
TEST(Multipart, ComesAsItIsAndInUtf8) {
  const auto refusal = [](const std::string& header, const std::string& bytes = "a") {
    return complaint("--xx\r\nContent-Disposition: form-data; name=a\r\n" + header + "\r\n\r\n" +
                     bytes + "\r\n--xx--");
  };
  const std::string encoding = "Content-Transfer-Encoding: ", type = "Content-Type: text/plain";
  for (const auto* const plain : {"7bit", "8BIT", "binary"})
    EXPECT_EQ(refusal(encoding + plain), "") << plain;
  for (const auto* const other : {"quoted-printable", "Base64", "x-uuencode"})
    EXPECT_THAT(refusal(encoding + other), HasSubstr("it should come as it is")) << other;
  const std::string latin = "\xe9", utf8 = "\xc3\xa9";
  for (const auto* const known : {"", "; charset=UTF-8", "; charset=\"utf-8\"", "; charset=utf8"})
    EXPECT_EQ(refusal(type + known, utf8), "") << known;
  EXPECT_EQ(refusal(type + "; charset=ISO-8859-1"), "") << "what Java's clients say of ASCII";
  EXPECT_THAT(refusal(type + "; charset=ISO-8859-1", latin),
              HasSubstr("'a' is in iso-8859-1, it should be in UTF-8"));
  EXPECT_THAT(refusal(type + "; charset=utf-16"), HasSubstr("'a' is in utf-16"));
  EXPECT_EQ(refusal("Content-Type: image/png; charset=binary", latin), "") << "a file";
}

TEST(Multipart, IsRefusedWithAReason) {
  const std::string head = "--xx\r\nContent-Disposition: form-data; name=a\r\n\r\n";
  for (const auto& [body, words] : std::vector<std::pair<std::string, std::string>>{
           {"", "boundary is not there"},
           {"--xx", "last boundary is not there"},
           {head + "b", "last boundary is not there"},
           {head + "b\r\n--xx", "last boundary is not there"},
           {head + "b\r\n--xxx--", "last boundary is not there"},
           {"--xx\r\n\r\nb\r\n--xx--", "a part has no name"},
           {"--xx\r\nContent-Disposition: attachment; name=a\r\n\r\nb\r\n--xx--", "has no name"},
           {"--xx\r\nContent-Disposition: form-data; name=\"a\r\n\r\nb\r\n--xx--", "not closed"},
           {"--xx\r\nnothing\r\n\r\nb\r\n--xx--", "without a colon"},
           {"--xx\r\nContent-Transfer-Encoding: base64\r\n\r\nb\r\n--xx--", "base64"},
           {"--xx\r\nA: " + std::string(5000, 'x') + "\r\n\r\n", "4096"}})
    EXPECT_THAT(complaint(body), HasSubstr(words)) << body;
  std::string many;
  for (int i = 0; i < 65; ++i) many += head + "b\r\n";
  EXPECT_THAT(complaint(many + "--xx--"), HasSubstr("more than 64 parts"));
  EXPECT_THAT(complaint("--\r\n", "multipart/form-data"), HasSubstr("names no boundary"));
  EXPECT_THAT(complaint("--\r\n", "multipart/form-data; boundary=" + std::string(71, 'x')),
              HasSubstr("1 to 70"));
}

}  // namespace braid::serve::multipart_test
