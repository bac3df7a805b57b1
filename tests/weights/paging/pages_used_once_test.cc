// Pages used once before a loop over the others.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "counting_device.h"
#include "weights/paging/pages.h"

namespace braid::pages_used_once_test {

void step(Pages& pages, const std::vector<int>& groups) {
  for (const int group : groups) {
    pages.enter(group);
    pages.leave(group);
  }
}

// Two groups used once before a loop over six others, twice. Every slot has several pages of the
// loop; a page alone in its slot would stay.
TEST(PagesUsedOnce, AreNotCopiedInTheLoop) {
  for (const auto& [resident, copied] :
       {std::pair(0, 6), std::pair(2, 4), std::pair(6, 0), std::pair(9, 0), std::pair(-1, 0)})
    for (const int prefetch : {0, 1}) {
      const auto device = std::make_shared<testing_pages::CountingDevice>();
      Pages pages(device, at::kCPU, {.prefetch = prefetch, .resident = resident});
      for (int i = 0; i < 8; ++i) {
        pages.add_group("blocks." + std::to_string(i), i < 2 ? PageUse::kOnce : PageUse::kRepeated);
        pages.add(at::full({4096}, i, at::kByte));
      }
      pages.finish();
      for (int picture = 0; picture < 2; ++picture) {
        step(pages, {0, 1});
        step(pages, {2, 3, 4, 5, 6, 7});
        const auto before = device->copied_bytes();
        for (int i = 0; i < 3; ++i) step(pages, {2, 3, 4, 5, 6, 7});
        EXPECT_EQ(device->copied_bytes() - before, 3 * copied * 4096)
            << resident << " stay, " << prefetch << " ahead, picture " << picture;
      }
      if (resident < 0) {
        EXPECT_EQ(device->copied_bytes(), 8 * 4096);
      }
    }
}

}  // namespace braid::pages_used_once_test
