// Makes tests that draw from LibTorch's own generator deterministic: in C++ its seed is random.
#include <ATen/Context.h>
#include <gtest/gtest.h>

namespace {

class Seed : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { at::manual_seed(1); }
};

const bool kIsSet = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Seed);
  return true;
}();

}  // namespace
