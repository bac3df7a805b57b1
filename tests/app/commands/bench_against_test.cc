// Results compared with earlier ones, and plotted.
#include "app/commands/bench_against.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "app/print/bar_chart.h"
#include "base/error.h"

namespace braid::bench_against_test {

using testing::HasSubstr;

OrderedJson result(std::vector<double> seconds, const std::string& config = "one rank") {
  auto sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  return {{"config", config},
          {"gpus", 1},
          {"machine", "a"},
          {"step_s", sorted[sorted.size() / 2]},
          {"steps_s", seconds}};
}

int count_slower(const OrderedJson& now, const OrderedJson& before, double tolerance) {
  std::vector<OrderedJson> results = {now};
  return compare_results(results, {before}, tolerance).slower;
}

TEST(Against, TellsTheRatio) {
  std::vector<OrderedJson> results = {result({3, 3, 3}), result({1, 1, 1}, "tp 2")};
  EXPECT_EQ(compare_results(results, {result({2, 2, 2}, "tp 2"), result({2, 2, 2})}, 0.1).slower,
            1);
  EXPECT_EQ(results[0]["against"]["ratio"], 1.5);
  EXPECT_EQ(results[0]["against"]["slower"], true);
  EXPECT_EQ(results[1]["against"]["ratio"], 0.5);
  EXPECT_EQ(results[1]["against"]["slower"], false);
}

TEST(Against, KnowsTheWordThatPipelineParallelismHadBefore) {
  std::vector<OrderedJson> results = {result({3}, "tp 2 x pp 2")};
  compare_results(results, {result({1}), result({2}, "tp 2 x layers 2")}, 0.1);
  EXPECT_EQ(results[0]["against"]["ratio"], 1.5);
}

TEST(Against, AllowsWhatIsWithinTheTolerance) {
  const auto before = result({1, 1, 1, 1, 1});
  EXPECT_EQ(count_slower(result({1.09, 1.09, 1.09, 1.09, 1.09}), before, 0.1), 0);
  EXPECT_EQ(count_slower(result({1.11, 1.11, 1.11, 1.11, 1.11}), before, 0.1), 1);
  EXPECT_EQ(count_slower(result({1.11, 1.11, 1.11, 1.11, 1.11}), before, 0.2), 0);
  EXPECT_EQ(count_slower(result({0.1, 0.1, 0.1, 0.1, 0.1}), before, 0), 0);
}

// The medians differ by a factor of 1.3, but so do the runs among themselves.
TEST(Against, AllowsWhatTheRunsDifferAmongThemselves) {
  const auto noisy = result({1.0, 1.0, 1.3, 1.6, 1.9});
  EXPECT_EQ(count_slower(noisy, result({1.0, 1.0, 1.0, 1.0, 1.0}), 0.1), 0);
  EXPECT_EQ(count_slower(result({1.3, 1.3, 1.3, 1.3, 1.3}), result({0.9, 0.9, 1.0, 1.4, 1.9}), 0.1),
            0);
  // one slow run hides nothing
  EXPECT_EQ(count_slower(result({1.3, 1.3, 1.3, 1.3, 1.3}), result({1.0, 1.0, 1.0, 1.0, 9.0}), 0.1),
            1);
}

TEST(Against, TellsWhatDiffersAndKeepsWhatWasCompared) {
  auto other = result({1, 1, 1});
  other["machine"] = "b";
  auto another = other;
  another["gpus"] = 4;
  std::vector<OrderedJson> results = {result({1, 1, 1}), result({1, 1, 1}, "tp 2")};
  const auto comparison =
      compare_results(results, {another, other, result({1, 1, 1}, "tp 2")}, 0.1);
  EXPECT_EQ(comparison.missing,
            "--against has no result of the same configuration: in the nearest one, machine was "
            "'b' and is 'a'");
  EXPECT_FALSE(results[0].contains("against"));
  EXPECT_TRUE(results[1].contains("against"));
}

TEST(Against, RefusesBeforeTimesAreTakenInVain) {
  const auto before = result({1, 1, 1});
  EXPECT_NO_THROW(
      require_comparable({{"config", "one rank"}, {"gpus", 1}, {"machine", "a"}}, {before}));
  EXPECT_NO_THROW(
      require_comparable({{"config", "tp 5"}}, {before, {{"config", "tp 5"}, {"failure", "no"}}}));
  try {
    require_comparable({{"config", "tp 2"}}, {before});
    ADD_FAILURE() << "not refused";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("config was 'one rank' and is 'tp 2'"));
  }
}

TEST(Against, LeavesFailuresOut) {
  std::vector<OrderedJson> results = {{{"config", "tp 5"}, {"failure", "no"}}};
  EXPECT_EQ(compare_results(results, {result({1, 1, 1})}, 0.1).slower, 0);
  EXPECT_FALSE(results[0].contains("against"));
}

TEST(BarChart, DrawsBarsToScale) {
  const auto svg = bar_chart({{"a & b", {{"<x>", 2, "two"}, {"y", 1, "one"}}}, {"c", {}}});
  EXPECT_THAT(svg, HasSubstr("a &amp; b"));
  EXPECT_THAT(svg, HasSubstr("&lt;x&gt;"));
  EXPECT_THAT(svg, HasSubstr("width=\"420.0\""));
  EXPECT_THAT(svg, HasSubstr("width=\"210.0\""));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  EXPECT_THAT(bar_chart({{"zero", {{"x", 0, "0"}}}}), HasSubstr("width=\"0.0\""));
}

}  // namespace braid::bench_against_test
