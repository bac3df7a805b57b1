// The header parser: what it accepts, and that every false header is rejected with a message.
#include "weights/files/safetensors_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "files.h"

namespace braid::safetensors_header_test {

using testing::HasSubstr;
using namespace testing_files;

std::vector<TensorEntry> parse(const std::string& file) {
  return parse_safetensors_header(std::as_bytes(std::span(file)), "f.safetensors");
}

std::string refusal(const std::string& file) {
  try {
    parse(file);
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(), HasSubstr("f.safetensors"));
    return e.what();
  }
  return "accepted";
}

TEST(SafetensorsHeader, FindsTensorsWhereTheyLie) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("empty":{"dtype":"I64","shape":[0,5],"data_offsets":[4,4]}})";
  const auto entries = parse(file_of(header, std::string(16, 'x')));
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_TRUE(entries[0].shape.empty());
  EXPECT_EQ(entries[1].name, "b");
  EXPECT_EQ(entries[1].type, ElementType::kBfloat16);
  EXPECT_EQ(entries[1].begin, 8 + header.size() + 4);
  EXPECT_EQ(entries[1].size, 12u);
  EXPECT_EQ(entries[2].size, 0u);
}

TEST(SafetensorsHeader, RefusesFilesThatAreTooShort) {
  EXPECT_THAT(refusal(""), HasSubstr("only 0 bytes"));
  EXPECT_THAT(refusal("1234567"), HasSubstr("only 7 bytes"));
  EXPECT_THAT(refusal(bytes_of_length(3) + "{}"), HasSubstr("truncated"));
}

TEST(SafetensorsHeader, RefusesAHeaderThatClaimsMoreThanThereIs) {
  EXPECT_THAT(refusal(bytes_of_length(1ull << 60) + "{}"), HasSubstr("1152921504606846976"));
  EXPECT_THAT(refusal(bytes_of_length(~0ull) + "{}"), HasSubstr("at most"));
}

TEST(SafetensorsHeader, RefusesWhatIsNoJsonObject) {
  for (const char* header : {"", "[]", "7", "{", "{\"a\":", "{\"a\":1}", "\xff\xfe"})
    EXPECT_NE(refusal(file_of(header, "")), "accepted") << header;
}

// Values take a hundred times the bytes of their text.
TEST(SafetensorsHeader, RefusesMoreValuesThanTensorsHave) {
  std::string header = R"({"__metadata__":{"a":[0)";
  for (int i = 0; i < 2'000'000; ++i) header += ",0";
  EXPECT_THAT(refusal(file_of(header + "]}}", "")), HasSubstr("at most 2000000 JSON values"));
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

TEST(SafetensorsHeader, RefusesEntriesThatDoNotAddUp) {
  const std::string data(8, 'x');
  EXPECT_EQ(refusal(file_of(one("F32", "[2]", "[0,8]"), data)), "accepted");
  EXPECT_THAT(refusal(file_of(one("F31", "[2]", "[0,8]"), data)), HasSubstr("unknown dtype 'F31'"));
  EXPECT_THAT(refusal(file_of(one("F32", "[3]", "[0,8]"), data)),
              HasSubstr("should have 12 bytes"));
  EXPECT_THAT(refusal(file_of(one("F32", "[-2]", "[0,8]"), data)), HasSubstr("'shape'"));
  EXPECT_THAT(refusal(file_of(one("F32", "[2.0]", "[0,8]"), data)), HasSubstr("'shape'"));
  EXPECT_THAT(refusal(file_of(one("F32", "[2]", "[0,16]"), data)), HasSubstr("truncated"));
  EXPECT_THAT(refusal(file_of(one("F32", "[2]", "[8,0]"), data)), HasSubstr("ascending"));
  EXPECT_THAT(refusal(file_of(one("F32", "[2]", "[0]"), data)), HasSubstr("ascending"));
  EXPECT_THAT(refusal(file_of(one("F32", "[2]", "[-8,0]"), data)), HasSubstr("'data_offsets'"));
  EXPECT_THAT(refusal(file_of(R"({"t":{"dtype":"F32","data_offsets":[0,8]}})", data)),
              HasSubstr("no 'shape'"));
}

// torch's float4_e2m1fn_x2 is F4: the file is whole, but coded in a way that is not read.
TEST(SafetensorsHeader, NamesDtypesOfLessThanEightBits) {
  for (const std::string dtype : {"F4", "F6_E2M3", "F6_E3M2"}) {
    const auto file = file_of(one(dtype, "[4,8]", "[0,16]"), std::string(16, 'x'));
    EXPECT_THROW(parse(file), OtherCoding) << dtype;
    EXPECT_THAT(refusal(file), HasSubstr("the dtype " + dtype + ", which Braid cannot read: take"));
  }
}

TEST(SafetensorsHeader, RefusesShapesThatOverflow) {
  const auto huge = one("F64", "[4294967296,4294967296,2]", "[0,0]");
  EXPECT_THAT(refusal(file_of(huge, "")), HasSubstr("more bytes than 64 bits"));
}

TEST(SafetensorsHeader, RefusesOverlapsAndGaps) {
  const auto two = [](const std::string& second) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],)"
           R"("data_offsets":)" +
           second + "}}";
  };
  EXPECT_EQ(refusal(file_of(two("[4,8]"), std::string(8, 'x'))), "accepted");
  EXPECT_THAT(refusal(file_of(two("[3,7]"), std::string(7, 'x'))), HasSubstr("overlap"));
  EXPECT_THAT(refusal(file_of(two("[0,4]"), std::string(4, 'x'))), HasSubstr("overlap"));
  EXPECT_THAT(refusal(file_of(two("[5,9]"), std::string(9, 'x'))),
              HasSubstr("belong to no tensor"));
  EXPECT_THAT(refusal(file_of(two("[4,8]"), std::string(9, 'x'))),
              HasSubstr("belong to no tensor"));
}

TEST(SafetensorsHeader, RefusesTheSameNameTwice) {
  const std::string entry = R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_THAT(refusal(file_of("{" + entry + "," + entry + "}", "")), HasSubstr("'a' twice"));
}

TEST(SafetensorsHeader, RefusesATruncatedFileAtEveryLength) {
  const auto whole = float_file({{"a", {2, 2}, {1, 2, 3, 4}}, {"b", {3}, {5, 6, 7}}});
  ASSERT_EQ(refusal(whole), "accepted");
  for (std::size_t length = 0; length < whole.size(); ++length)
    ASSERT_NE(refusal(whole.substr(0, length)), "accepted") << length;
}

}  // namespace braid::safetensors_header_test
