// Keeps as many models loaded as memory allows.
#include "serve/loaded_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::serve::loaded_models_test {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(LoadedModels, AreOneWithoutABudget) {
  LoadedModels models({{}, {}}, {});
  EXPECT_THAT(models.enter(0), IsEmpty());
  EXPECT_THAT(models.enter(0), IsEmpty());
  EXPECT_THAT(models.enter(1), ElementsAre(0));
  EXPECT_THAT(models.enter(0), ElementsAre(1));
}

TEST(LoadedModels, LoseTheLeastRecentlyUsed) {
  LoadedModels models({{10, 1}, {20, 1}, {30, 1}, {45, 1}}, {.device = 60});
  EXPECT_THAT(models.enter(0), IsEmpty());
  EXPECT_THAT(models.enter(1), IsEmpty());
  EXPECT_THAT(models.enter(2), IsEmpty()) << "60 of 60";
  EXPECT_THAT(models.enter(0), IsEmpty()) << "is there";
  EXPECT_THAT(models.enter(3), ElementsAre(1, 2)) << "10 beside 45 fit";
  EXPECT_THAT(models.enter(2), ElementsAre(0, 3));
}

TEST(LoadedModels, KeepWithinTheHostsMemoryToo) {
  LoadedModels models({{1, 10}, {1, 20}}, {.device = 100, .host = 25});
  EXPECT_THAT(models.enter(0), IsEmpty());
  EXPECT_THAT(models.enter(1), ElementsAre(0));
}

TEST(LoadedModels, ForgetWhatCouldNotBeLoaded) {
  LoadedModels models({{}, {}}, {});
  models.enter(0);
  models.leave(0);
  EXPECT_THAT(models.enter(1), IsEmpty());
}

}  // namespace braid::serve::loaded_models_test
