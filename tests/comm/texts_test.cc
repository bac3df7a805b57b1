#include "comm/texts.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/worlds.h"

namespace braid::texts_test {

class Texts : public testing::TestWithParam<Over> {};
INSTANTIATE_TEST_SUITE_P(Transports, Texts, testing::Values(Over::kThreads, Over::kSockets),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Texts, OfAllRanksReachEach) {
  run_over(GetParam(), {.size = 3}, [](const Group& g) {
    const std::vector<std::string> all = {"a", "", std::string(100'000, 'c')};
    EXPECT_EQ(all_gather_texts(g, all[std::size_t(g.rank())]), all);
  });
}

TEST(Texts, OutliveTheirStrings) {
  auto text = std::make_unique<std::string>(1000, 'a');
  const auto bytes = tensor_of_text(*text);
  text->assign(1000, 'b');
  text.reset();
  EXPECT_TRUE(at::equal(bytes, at::full({1000}, int('a'), at::kByte)));
}

}  // namespace braid::texts_test
