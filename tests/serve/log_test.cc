// One line per event, whatever a client sends.
#include "serve/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::serve::log_test {

TEST(Log, WritesALineForEachEvent) {
  std::string written;
  Log log([&](const std::string& line) { written += line; });
  log("request", {{"path", "/v1/jobs"}, {"status", "200"}});
  EXPECT_THAT(written, testing::MatchesRegex("time=....-..-..T..:..:..[.]...Z event=request "
                                             "path=/v1/jobs status=200\n"));
}

TEST(Log, CannotBeForgedByAClient) {
  EXPECT_EQ(log_value("/a b"), "\"/a b\"");
  EXPECT_EQ(log_value("a\nevent=ready"), "\"a\\x0aevent=ready\"");
  EXPECT_EQ(log_value("a\" b=\"c\\"), "\"a\\\" b=\\\"c\\\\\"");
  EXPECT_EQ(log_value(""), "\"\"");
  EXPECT_EQ(log_value("a\xc2\x85\xc2\x9b\x7f"), "\"a\\xc2\\x85\\xc2\\x9b\\x7f\"")
      << "terminals obey them";
  EXPECT_EQ(log_value("\x9b\xff\xe7\xb4"), R"("\x9b\xff\xe7\xb4")") << "not UTF-8";
  EXPECT_EQ(log_value("\u00a0\u7d05\ufffd\U0001f600"), "\"\u00a0\u7d05\ufffd\U0001f600\"");
  EXPECT_LT(log_value(std::string(1'000'000, 'a')).size(), 2000u);
  EXPECT_THAT(log_value(std::string(999, 'a') + "\u7d05b"), testing::EndsWith("a\u7d05\""))
      << "no character is cut in two";
}

}  // namespace braid::serve::log_test
