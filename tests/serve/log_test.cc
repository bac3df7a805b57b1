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
  EXPECT_LT(log_value(std::string(1'000'000, 'a')).size(), 2000u);
}

}  // namespace braid::serve::log_test
