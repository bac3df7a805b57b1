// JSON as people and programs read it.
#include "app/print/readable_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "has_match.h"

namespace braid::readable_json_test {

TEST(ReadableJson, BecomesAlignedLines) {
  const OrderedJson json = {{"name", "x\ny"},
                            {"free_bytes", 1500},
                            {"inner", {{"parameters", 1234}, {"list", {1, 2}}, {"on", true}}},
                            {"none", nullptr}};
  EXPECT_EQ(readable_json(json),
            "name        x y\n"
            "free_bytes  1.50 kB\n"
            "inner\n"
            "  parameters  1,234\n"
            "  list        1, 2\n"
            "  on          yes\n"
            "none        none\n");
}

TEST(ReadableJson, LongListsAreBroken) {
  const OrderedJson words(std::vector<std::string>(12, "1234567890"));
  const auto text = readable_json({{"key", words}});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_THAT(text, testing::HasSubstr(",\n     1234567890, "));
  EXPECT_THAT(text, testing::Not(HasMatch("[^\n]{101}")));
}

TEST(ReadableJson, OfPathsThatAreNotUtf8IsStillJson) {
  EXPECT_EQ(indented_json({{"path", "a\xff"}}), "{\n  \"path\": \"a\xef\xbf\xbd\"\n}\n");
}

}  // namespace braid::readable_json_test
