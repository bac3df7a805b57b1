// JSON: what is rejected, and that every error names the file and the key.
#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "message_of.h"

namespace braid::json_test {

using testing::HasSubstr;

TEST(Json, RefusesWhatIsNotJson) {
  for (const char* text : {"", "{", "[1,]", "nul", "{\"a\":1}x", "\"\xff\"", "{\"a\" 1}"})
    EXPECT_THAT(message_of([&] { parse_json(text, "f.json"); }), HasSubstr("f.json")) << text;
}

TEST(Json, RefusesDuplicateKeysAtAnyDepth) {
  EXPECT_THAT(message_of([] { parse_json(R"({"a":[{"b":1,"b":2}]})", "f"); }),
              HasSubstr("has the key 'b' twice"));
  EXPECT_NO_THROW(parse_json(R"({"a":{"a":1},"b":{"a":1}})", "f"));
}

TEST(Json, ReadsWhatTheParserItWrapsReads) {
  for (const char* text :
       {"null", "3", "-1.5e3", R"("a\u00e9\n")", "[]", "{}", R"([[],[1,[2,"x"]],{"a":[{}]}])",
        R"({"b":{"z":[1,{"q":null}],"y":true},"a":18446744073709551615,"c":-9,"d":1e400000000000})",
        R"({"":{"":{"":[false]}}})", R"([{"a":1},{"a":2},[{"a":{"a":3}}],"t"])"}) {
    const auto wanted = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (wanted.is_discarded()) {
      EXPECT_THROW(parse_json(text, "f"), InputError) << text;
      continue;
    }
    const auto got = parse_json(text, "f");
    EXPECT_EQ(got, wanted) << text;
    EXPECT_EQ(got.dump(), wanted.dump());
  }
  EXPECT_TRUE(parse_json("7", "f").is_number_unsigned());
}

TEST(Json, AcceptsAHundredLevels) {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + "1" + std::string(levels, ']');
  };
  EXPECT_NO_THROW(parse_json(nested(100), "f"));
  EXPECT_THAT(message_of([&] { parse_json(nested(101), "f"); }), HasSubstr("deeper than 100"));
}

double seconds_to_parse(int members) {
  std::string text = "{";
  for (int i = 0; i < members; ++i) text += text_of(i ? "," : "", '"', i, "\":{\"a\":[1]}");
  const auto begin = std::clock();
  EXPECT_EQ(parse_json(text + "}", "f").size(), std::size_t(members));
  return double(std::clock() - begin) / CLOCKS_PER_SEC;
}

// Headers have a member per tensor. Ten times as many take ten times as long, not a hundred times.
TEST(Json, TakesAsLongAsTheTextIs) {
  EXPECT_LT(seconds_to_parse(40000), 40 * std::max(0.001, seconds_to_parse(4000)));
}

TEST(Json, RefusesBottomlessNesting) {
  EXPECT_THAT(message_of([] { parse_json(std::string(100000, '['), "f"); }), HasSubstr("deeper"));
}

TEST(JsonObject, ReadsTypedFields) {
  const auto json = parse_json(R"({"i":3,"x":0.5,"b":true,"s":"t","l":[1,2],"n":null})", "f");
  const JsonObject object(json, "f");
  EXPECT_EQ(object.integer("i", 0, 9), 3);
  EXPECT_EQ(object.integer_or("n", 7, 0, 9), 7);
  EXPECT_EQ(object.number_or("x", 0), 0.5);
  EXPECT_TRUE(object.flag_or("b", false));
  EXPECT_EQ(object.string("s"), "t");
  EXPECT_EQ(object.integers_or("l", {}, 0, 9), (std::vector<std::int64_t>{1, 2}));
  EXPECT_FALSE(object.has("n"));
}

TEST(JsonObject, NamesTheFileAndTheKeyInEveryComplaint) {
  const auto json =
      parse_json(R"({"i":3000000000000000000000,"s":5,"u":18446744073709551615})", "f");
  const JsonObject object(json, "f");
  EXPECT_THAT(message_of([&] { object.integer("i", 0, 9); }), HasSubstr("f: 'i'"));
  EXPECT_THAT(message_of([&] { object.integer("u", -1, INT64_MAX); }), HasSubstr("f: 'u'"));
  EXPECT_THAT(message_of([&] { object.integer("s", 6, 9); }), HasSubstr("between 6 and 9"));
  EXPECT_THAT(message_of([&] { object.string("s"); }), HasSubstr("should be a string, it is 5"));
  EXPECT_THAT(message_of([&] { object.at("none"); }), HasSubstr("f has no 'none'"));
  EXPECT_THAT(message_of([&] { JsonObject(json["s"], "f"); }), HasSubstr("JSON object"));
}

}  // namespace braid::json_test
