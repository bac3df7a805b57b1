// JSON: what is rejected, and that every error names the file and the key.
#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
