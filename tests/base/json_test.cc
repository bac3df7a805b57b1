// JSON: what is rejected, and that every error names the file and the key.
#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "message_of.h"
#include "temporary_folder.h"

namespace braid::json_test {

using testing::HasSubstr;

TEST(Json, RefusesWhatIsNotJson) {
  for (const char* text : {"", "{", "[1,]", "nul", "{\"a\":1}x", "\"\xff\"", "{\"a\" 1}"})
    EXPECT_THAT(message_of([&] { parse_json(text, "f.json"); }), HasSubstr("f.json")) << text;
}

TEST(Json, OfFilesMayBeginWithAByteOrderMark) {
  const TemporaryFolder folder;
  write_file(folder / "f.json", "\xef\xbb\xbf {\"a\":NaN}");
  EXPECT_TRUE(std::isnan(read_json(folder / "f.json")["a"].get<double>()));
  write_file(folder / "p.json", "\xef\xbb\xbf<html>");
  EXPECT_THAT(message_of([&] { read_json(folder / "p.json"); }), HasSubstr("web page"));
}

// The reader that is wrapped takes a zero byte for the end.
TEST(Json, RefusesZeroBytes) {
  for (const auto& text : {std::string("{}\0x", 4), std::string("{\"a\":\0 1}", 9)})
    EXPECT_THAT(message_of([&] { parse_json(text, "f"); }), HasSubstr("a byte of value zero"));
}

// The reader reports numbers that are too large in another way.
TEST(Json, SaysWhereInOurOwnWords) {
  const auto said = [](const char* text) { return message_of([&] { parse_json(text, "f"); }); };
  EXPECT_THAT(said("{\n\"a\" 1}"),
              testing::StartsWith("f is not valid JSON: parse error at line 2, "
                                  "column 5"));
  EXPECT_THAT(said("[1e400]"), testing::StartsWith("f is not valid JSON: number overflow"));
  for (const char* text : {"{", "[1e400]", "\"\xff\""})
    EXPECT_THAT(said(text), testing::Not(HasSubstr("json.exception"))) << text;
}

// Python's json writes and reads them, in schedulers' configs for one. A request is plain JSON.
TEST(Json, OfFilesMayHoldPythonsNumbersThatAreNotFinite) {
  const std::string text =
      R"({"a":-Infinity,"b":[NaN,Infinity , 1e+00,2e+00],"s":"NaN \" -Infinity","NaN":2e+000})";
  const auto json = parse_python_json(text, "f");
  const auto infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(json["a"].get<double>(), -infinity);
  EXPECT_TRUE(std::isnan(json["b"][0].get<double>()));
  EXPECT_EQ(json["b"][1].get<double>(), infinity);
  EXPECT_EQ(json["b"][2], 1.0) << "a number that is written like no other";
  EXPECT_EQ(json["b"][3], 2.0);
  EXPECT_EQ(parse_python_json("[1e+00,-1e+00,-Infinity,1e+000,\"1e+00\"]", "f").dump(),
            "[1.0,-1.0,null,1.0,\"1e+00\"]");
  EXPECT_EQ(json["s"], "NaN \" -Infinity");
  EXPECT_EQ(json["NaN"], 2.0);
  EXPECT_EQ(parse_python_json("-Infinity", "f").get<double>(), -infinity);
  EXPECT_THROW(parse_json(text, "f"), InputError);
}

TEST(Json, OfFilesMayHoldNoOtherWords) {
  for (const char* text : {"[-NaN]", "[1Infinity]", "[NaN1]", "[--Infinity]", "[+Infinity]",
                           "[Infinity.5]", "[nan]", "[\"\" NaN]", "{NaN:1}", "[NaN,]",
                           "[NaNInfinity]", "[Infinit]", "[NaN,1e+00x]", "[NaN 1e+00]"})
    EXPECT_THROW(parse_python_json(text, "f"), InputError) << text;
}

TEST(Json, ThatIsNotFiniteIsRefusedWhereItIsRead) {
  const TemporaryFolder folder;
  write_file(folder / "c.json", R"({"x":-Infinity,"n":NaN,"l":[1,Infinity],"unread":Infinity})");
  const auto object = read_json_object(folder / "c.json");
  const auto said = [&](auto read) { return message_of([&] { read(); }); };
  EXPECT_THAT(said([&] { object.number_or("x", 1); }),
              HasSubstr("c.json: 'x' should be a number, it is -Infinity"));
  EXPECT_THAT(said([&] { object.integer("n", 0, 9); }),
              HasSubstr("'n' should be a whole number, it is NaN"));
  EXPECT_THAT(said([&] { object.integers_or("l", {}, 0, 9); }), HasSubstr("one is Infinity"));
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

// A number may have any number of zeros, and each word in a file with it stays short.
TEST(Json, OfFilesTakesAsLongAsTheTextIs) {
  const auto seconds = [](std::size_t zeros) {
    std::string text = "[1e+" + std::string(zeros, '0');
    for (std::size_t i = 0; i < zeros / 10; ++i) text += ",NaN";
    const auto begin = std::clock();
    EXPECT_EQ(parse_python_json(text + "]", "f").size(), 1 + zeros / 10);
    return double(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  EXPECT_LT(seconds(100'000), 40 * std::max(0.001, seconds(10'000)));
}

TEST(Json, HasAsManyValuesAsItsReaderAllows) {
  const auto* const text = R"([1, {"a": 2}, []])";
  EXPECT_NO_THROW(parse_json(text, "f", 5));
  EXPECT_THAT(message_of([&] { parse_json(text, "f", 4); }),
              HasSubstr("f should have at most 4 JSON values, it has more"));
  std::string many = "[0";
  for (int i = 0; i < 300'000; ++i) many += ",0";
  EXPECT_EQ(parse_json(many + "]", "f").size(), 300'001u) << "files bound their bytes instead";
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
  EXPECT_THAT(message_of([&] { object.integer("s", 6, 6); }), HasSubstr("should be 6, it is 5"));
  EXPECT_THAT(message_of([&] { object.string("s"); }), HasSubstr("should be a string, it is 5"));
  EXPECT_THAT(message_of([&] { object.at("none"); }), HasSubstr("f has no 'none'"));
  EXPECT_THAT(message_of([&] { JsonObject(json["s"], "f"); }), HasSubstr("JSON object"));
}

// Each value of a wrong type or beyond its bounds, for every kind of field.
TEST(JsonObject, RefusesValuesOfOtherTypes) {
  const auto json = parse_json(
      R"({"x":0.5,"s":"1","b":1,"l":[1,2.5],"m":[1,10],"n":[1,18446744073709551615],"t":["a",3]})",
      "f");
  const JsonObject object(json, "f");
  const auto integers = [&](const char* key, std::int64_t low) {
    return message_of([&] { object.integers_or(key, {}, low, 9); });
  };
  EXPECT_THAT(integers("l", 0), HasSubstr("f: 'l' should hold whole numbers between 0 and 9"));
  EXPECT_THAT(integers("m", 0), HasSubstr("one is 10"));
  EXPECT_THAT(integers("m", 2), HasSubstr("one is 1"));
  EXPECT_THAT(integers("n", -1), HasSubstr("one is 18446744073709551615")) << "it is not -1";
  EXPECT_THAT(integers("x", 0), HasSubstr("should be a list of whole numbers, it is 0.5"));
  EXPECT_THAT(message_of([&] { object.strings_or("t", {}); }), HasSubstr("one item is 3"));
  EXPECT_THAT(message_of([&] { object.strings_or("s", {}); }), HasSubstr("a list of strings"));
  EXPECT_THAT(message_of([&] { object.flag_or("b", false); }), HasSubstr("true or false, it is 1"));
  EXPECT_THAT(message_of([&] { object.number_or("s", 0); }), HasSubstr("a number, it is \"1\""));
  EXPECT_THAT(message_of([&] { object.string_or("x", ""); }), HasSubstr("a string, it is 0.5"));
  EXPECT_THAT(message_of([&] { object.integer("x", 0, 9); }), HasSubstr("a whole number"));
}

TEST(JsonObject, NamesAClassOrTheLastOfAList) {
  const auto named = [](const std::string& value) {
    const auto json = parse_json("{\"_class_name\":" + value + "}", "f");
    return JsonObject(json, "f").class_name_or("Usual");
  };
  EXPECT_EQ(named(R"("A")"), "A");
  EXPECT_EQ(named(R"(["code","A"])"), "A");
  EXPECT_EQ(named("null"), "Usual");
  for (const char* const other : {"7", "[]", R"(["A",7])", "{}"})
    EXPECT_THAT(message_of([&] { (void)named(other); }),
                HasSubstr("f: '_class_name' should name a class, it is"));
}

TEST(JsonObject, TakesWhatIsMissingFromItsCaller) {
  const auto json = parse_json(R"({"s":"t","none":null})", "f");
  const JsonObject object(json, "f");
  EXPECT_EQ(object.string_or("s", "u"), "t");
  for (const auto* const key : {"none", "missing"}) {
    EXPECT_EQ(object.string_or(key, "u"), "u");
    EXPECT_EQ(object.integer_or(key, 70, 0, 9), 70) << "a default has no bounds";
    EXPECT_EQ(object.number_or(key, 1.5), 1.5);
    EXPECT_TRUE(object.flag_or(key, true));
    EXPECT_EQ(object.integers_or(key, {7}, 0, 9), std::vector<std::int64_t>{7});
    EXPECT_EQ(object.strings_or(key, {"u"}), std::vector<std::string>{"u"});
    EXPECT_THAT(message_of([&] { object.at(key); }), HasSubstr("f has no"));
  }
}

TEST(JsonObject, HasSetWhatIsMissingButNotWhatIsNull) {
  const auto json = parse_json(R"({"on":true,"off":false,"none":null,"one":1})", "f");
  const JsonObject object(json, "f");
  EXPECT_TRUE(object.is_set("on"));
  EXPECT_TRUE(object.is_set("missing"));
  EXPECT_FALSE(object.is_set("off"));
  EXPECT_FALSE(object.is_set("none"));
  EXPECT_THAT(message_of([&] { (void)object.is_set("one"); }), HasSubstr("true or false, it is 1"));
}

TEST(JsonObject, OfAFileOutlivesTheReading) {
  const TemporaryFolder folder;
  write_file(folder / "a.json", R"({"name":"long enough to be in memory of its own"})");
  const auto copy = [&] {
    const auto object = read_json_object(folder / "a.json");
    return JsonObject(object);
  }();
  EXPECT_EQ(copy.string("name"), "long enough to be in memory of its own");
  write_file(folder / "a.json", "[1]");
  EXPECT_THAT(message_of([&] { read_json_object(folder / "a.json"); }),
              testing::AllOf(HasSubstr("a.json"), HasSubstr("it holds array")));
}

}  // namespace braid::json_test
