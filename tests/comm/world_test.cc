// What every world does before its ranks begin.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "comm/thread.h"

namespace braid::world_test {

using Detect = int();
std::atomic<int> questions = 0;

Detect* detect_of_mkl() {
  return reinterpret_cast<Detect*>(dlsym(RTLD_NEXT, "mkl_vml_serv_cpu_detect"));
}

// MKL's functions of vectors call this one instead of MKL's, as the program's symbols come first.
extern "C" __attribute__((visibility("default"))) int mkl_vml_serv_cpu_detect() {
  ++questions;
  return detect_of_mkl()();
}

// The process of the death test begins anew: nothing has been computed in it.
TEST(WorldDeathTest, HasMklDetectTheProcessorBeforeItsRanksBegin) {
  if (!detect_of_mkl()) GTEST_SKIP() << "LibTorch is built without MKL's functions of vectors";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto begin = [] {
    const int before = questions;
    const ThreadWorld world({.size = 2});
    std::_Exit(before == 0 && questions > 0 ? 0 : 1);
  };
  EXPECT_EXIT(begin(), testing::ExitedWithCode(0), "");
}

}  // namespace braid::world_test
