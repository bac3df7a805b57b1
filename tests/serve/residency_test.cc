// Which models are loaded.
#include "serve/residency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::serve::residency_test {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Residency, IsOfOneModelWithoutABudget) {
  Residency residency({{}, {}}, {});
  EXPECT_THAT(residency.enter(0), IsEmpty());
  EXPECT_THAT(residency.enter(0), IsEmpty());
  EXPECT_THAT(residency.enter(1), ElementsAre(0));
  EXPECT_THAT(residency.enter(0), ElementsAre(1));
}

TEST(Residency, EndsForThoseThatWereNotUsedForLongest) {
  Residency residency({{10, 1}, {20, 1}, {30, 1}, {45, 1}}, {.device = 60});
  EXPECT_THAT(residency.enter(0), IsEmpty());
  EXPECT_THAT(residency.enter(1), IsEmpty());
  EXPECT_THAT(residency.enter(2), IsEmpty()) << "60 of 60";
  EXPECT_THAT(residency.enter(0), IsEmpty()) << "is there";
  EXPECT_THAT(residency.enter(3), ElementsAre(1, 2)) << "10 beside 45 fit";
  EXPECT_THAT(residency.enter(2), ElementsAre(0, 3));
}

TEST(Residency, KeepsWithinTheHostsMemoryToo) {
  Residency residency({{1, 10}, {1, 20}}, {.device = 100, .host = 25});
  EXPECT_THAT(residency.enter(0), IsEmpty());
  EXPECT_THAT(residency.enter(1), ElementsAre(0));
}

TEST(Residency, ForgetsWhatCouldNotBeLoaded) {
  Residency residency({{}, {}}, {});
  residency.enter(0);
  residency.leave(0);
  EXPECT_THAT(residency.enter(1), IsEmpty());
}

}  // namespace braid::serve::residency_test
