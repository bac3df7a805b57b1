// Pages: tensors in fixed places, the right contents at each use, no waiting and no allocation.
#include "weights/paging/pages.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "counting_device.h"
#include "files.h"
#include "simulated_device.h"
#include "weights/paging/cpu_device.h"
#include "weights/paging/order_checker.h"
#include "weights/paging/page.h"

namespace braid::pages_test {

using testing::HasSubstr;
using namespace testing_files;
using namespace testing_pages;

// Groups of two tensors with different sizes and dtypes; all values of group i are near i.
struct Model {
  std::vector<std::pair<Tensor, Tensor>> wanted, views;

  Model(Pages& pages, int count) {
    for (int i = 0; i < count; ++i) {
      wanted.emplace_back(at::full({3 + i % 4, 700}, i + 0.5, at::kBFloat16),
                          at::full({5, 1}, i, at::kFloat));
      pages.add_group("blocks." + std::to_string(i));
      const auto first = pages.add(wanted.back().first), second = pages.add(wanted.back().second);
      views.emplace_back(first, second);
    }
    pages.finish();
  }
  bool is_right(int group) const {
    const auto& [a, b] = views[std::size_t(group)];
    const auto& [c, d] = wanted[std::size_t(group)];
    return at::equal(a, c) && at::equal(b, d);
  }
};

// Uses the groups in order, calling `while_used(group)` for each.
template <class Look>
void step(Pages& pages, const std::vector<int>& groups, Look while_used) {
  for (const int group : groups) {
    pages.enter(group);
    while_used(group);
    pages.leave(group);
  }
}

const std::vector<int> kAnyOrder = {0, 3, 1, 5, 6, 2, 4};

struct Options {
  int groups, prefetch, resident;
  Residency residency = Residency::kLeading;
  bool on_disk = false;
};

class PagesTest : public testing::TestWithParam<Options> {
 protected:
  TemporaryFolder folder_;
  std::shared_ptr<const PageFolder> folder() const {
    return GetParam().on_disk ? std::make_shared<const PageFolder>(folder_.path()) : nullptr;
  }
  std::shared_ptr<Pages> pages() const {
    const auto o = GetParam();
    return std::make_shared<Pages>(std::make_shared<CpuPageDevice>(), at::kCPU,
                                   PageOptions{.prefetch = o.prefetch,
                                               .resident = o.resident,
                                               .residency = o.residency,
                                               .folder = folder()});
  }
};

TEST_P(PagesTest, HoldTheRightWeightsAtEveryUse) {
  const auto pages = this->pages();
  const Model model(*pages, GetParam().groups);
  for (int step = 0; step < 3; ++step)
    for (int group = 0; group < GetParam().groups; ++group) {
      const Page page(pages, group);
      const auto in_use = page.use();
      EXPECT_TRUE(model.is_right(group)) << "step " << step << " group " << group;
    }
}

TEST_P(PagesTest, MayBeUsedInAnyOrder) {
  const auto pages = this->pages();
  const Model model(*pages, GetParam().groups);
  for (int i = 0; i < 40; ++i) {
    const int group = (i * i + i / 3) % GetParam().groups;
    const Page page(pages, group);
    const auto in_use = page.use();
    EXPECT_TRUE(model.is_right(group));
  }
}

TEST_P(PagesTest, ViewsNeverMove) {
  const auto pages = this->pages();
  const Model model(*pages, GetParam().groups);
  std::vector<const void*> places;
  for (const auto& [a, b] : model.views) places.push_back(a.const_data_ptr());
  for (int step = 0; step < 2; ++step)
    for (int group = 0; group < GetParam().groups; ++group) {
      const Page page(pages, group);
      const auto in_use = page.use();
      EXPECT_EQ(model.views[std::size_t(group)].first.const_data_ptr(), places[std::size_t(group)]);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, PagesTest,
    testing::Values(Options{1, 1, 0}, Options{2, 1, 0}, Options{6, 1, 0}, Options{7, 1, 0},
                    Options{7, 0, 0}, Options{7, 2, 0}, Options{5, 9, 0}, Options{7, 1, 3},
                    Options{7, 1, 3, Residency::kStrided}, Options{7, 1, -1}, Options{7, 2, 6},
                    Options{1, 0, 0}, Options{1, 3, 9}, Options{3, 64, 0}, Options{2, 1, 1},
                    Options{7, 3, 9}, Options{7, 1, 6, Residency::kStrided},
                    Options{1, 2, 0, {}, true}, Options{3, 1, -1, {}, true},
                    Options{6, 1, 2, Residency::kStrided, true}, Options{5, 0, 0, {}, true}));

TEST(Pages, CopyEachGroupOnceAStep) {
  const auto device = std::make_shared<CountingDevice>();
  Pages pages(device, at::kCPU, {.prefetch = 1});
  const Model model(pages, 6);
  for (int i = 0; i < 4; ++i) step(pages, {0, 1, 2, 3, 4, 5}, [](int) {});
  // and the first group of a fifth step, prefetched
  EXPECT_EQ(device->copied_bytes(), 4 * pages.page_bytes() + 8192);
  EXPECT_EQ(pages.slot_bytes(), 2 * 12288) << "two slots, as large as the largest group";
}

// Any order of loading will do once the order of use has been seen. Here every slot has several
// pages; a page alone in its slot would stay.
TEST(Pages, CopyEachGroupOnceAStepInAnyOrder) {
  for (const int prefetch : {0, 1, 2}) {
    const auto device = std::make_shared<CountingDevice>();
    Pages pages(device, at::kCPU, {.prefetch = prefetch});
    const Model model(pages, 7);
    const auto look = [&](int group) { EXPECT_TRUE(model.is_right(group)); };
    for (int i = 0; i < 2; ++i) step(pages, kAnyOrder, look);
    const auto before = device->copied_bytes();
    for (int i = 0; i < 3; ++i) step(pages, kAnyOrder, look);
    EXPECT_EQ(device->copied_bytes() - before, 3 * pages.page_bytes()) << prefetch << " ahead";
  }
}

// Residents are copied once; the others, two per slot, once per step.
TEST(Pages, OfResidentsAreNeverCopiedAgain) {
  for (const auto residency : {Residency::kLeading, Residency::kStrided}) {
    const auto device = std::make_shared<CountingDevice>();
    Pages pages(device, at::kCPU, {.prefetch = 1, .resident = 3, .residency = residency});
    for (int i = 0; i < 7; ++i) {
      pages.add_group("blocks." + std::to_string(i));
      pages.add(at::full({4096}, i, at::kByte));
    }
    pages.finish();
    EXPECT_EQ(device->copied_bytes(), 3 * 4096);
    for (int i = 0; i < 2; ++i) step(pages, kAnyOrder, [](int) {});
    const auto before = device->copied_bytes();
    for (int i = 0; i < 3; ++i) step(pages, kAnyOrder, [](int) {});
    EXPECT_EQ(device->copied_bytes() - before, 3 * 4 * 4096);
  }
}

// Vector instructions and direct reads require it.
TEST(Pages, HoldTensorsOfOddSizesAtAlignedPlaces) {
  const TemporaryFolder folder;
  for (const bool on_disk : {false, true}) {
    const auto pages = on_disk ? std::make_shared<const PageFolder>(folder.path()) : nullptr;
    Pages all(std::make_shared<CpuPageDevice>(), at::kCPU, {.prefetch = 0, .folder = pages});
    std::vector<std::vector<Tensor>> wanted(3), views(3);
    for (std::size_t group = 0; group < 3; ++group) {
      all.add_group(std::to_string(group));
      for (const auto& shape : {std::vector<std::int64_t>{}, {1}, {3, 7}, {255}, {257}, {4095, 3}})
        for (const auto dtype : {at::kChar, at::kBFloat16, at::kDouble}) {
          wanted[group].push_back(at::randint(-100, 100, shape, at::kFloat).to(dtype));
          views[group].push_back(all.add(wanted[group].back()));
        }
    }
    all.finish();
    step(all, {0, 1, 2, 1, 0}, [&](int group) {
      const auto& want = wanted[std::size_t(group)];
      for (std::size_t i = 0; i < want.size(); ++i) {
        const auto& got = views[std::size_t(group)][i];
        EXPECT_TRUE(at::equal(got, want[i])) << group << " " << i;
        EXPECT_EQ(std::uintptr_t(got.const_data_ptr()) % 256, 0u) << group << " " << i;
      }
    });
  }
}

// Steps that leave out layers or use another order than the last.
TEST(Pages, AreRightWhenTheOrderChangesFromStepToStep) {
  for (const int prefetch : {0, 1, 3})
    for (const int resident : {0, 2}) {
      Pages pages(std::make_shared<CpuPageDevice>(), at::kCPU,
                  {.prefetch = prefetch, .resident = resident});
      const Model model(pages, 6);
      const auto look = [&](int group) { EXPECT_TRUE(model.is_right(group)) << group; };
      const std::vector<int> forwards = {0, 1, 2, 3, 4, 5}, backwards = {5, 4, 3, 2, 1, 0};
      const std::vector<int> some = {0, 2, 4}, twice = {1, 1, 3, 3}, one = {4};
      const std::vector<int> back_and_forth = {0, 3, 0, 4, 0, 5, 2, 1, 2, 1};
      for (const auto& groups :
           {forwards, backwards, some, twice, one, one, back_and_forth, forwards})
        step(pages, groups, look);
    }
}

TEST(Pages, MayHaveGroupsAndTensorsOfNothing) {
  const TemporaryFolder folder;
  for (const bool on_disk : {false, true})
    for (const int resident : {0, 1, -1}) {
      const auto pages = on_disk ? std::make_shared<const PageFolder>(folder.path()) : nullptr;
      Pages all(std::make_shared<CpuPageDevice>(), at::kCPU,
                {.resident = resident, .folder = pages});
      all.add_group("empty");
      all.add_group("of_nothing");
      const auto nothing = all.add(at::empty({0, 7}, at::kFloat));
      const auto one = all.add(at::full({1}, 5, at::kFloat));
      all.add_group("empty_at_last");
      all.finish();
      for (int i = 0; i < 6; ++i) {
        all.enter(i % 3);
        EXPECT_TRUE(i % 3 != 1 || one.item<float>() == 5);
        EXPECT_EQ(nothing.sizes(), at::IntArrayRef({0, 7}));
        all.leave(i % 3);
      }
    }
}

TEST(Pages, WithoutGroupsAreNothing) {
  Pages pages(std::make_shared<CpuPageDevice>(), at::kCPU, {.prefetch = 3, .resident = 2});
  pages.finish();
  EXPECT_EQ(pages.slot_bytes(), 0);
  EXPECT_EQ(pages.page_bytes(), 0);
}

// A model's parts have separate slots and one copy stream.
TEST(Pages, OfSeveralPartsShareADevice) {
  const auto checker = std::make_shared<OrderChecker>(std::make_shared<CpuPageDevice>());
  const auto make = [&](PageOptions options) {
    return std::make_shared<Pages>(checker, at::kCPU, options);
  };
  const auto text = make({.prefetch = 2}), flux = make({.prefetch = 1, .resident = 2});
  const Model of_text(*text, 5), of_flux(*flux, 7);
  checker->enter_loop();
  for (int i = 0; i < 70; ++i) {
    const Page a(text, i % 5), b(flux, i % 7);
    const auto in_use = a.use(), in_use_too = b.use();
    EXPECT_TRUE(of_text.is_right(i % 5));
    EXPECT_TRUE(of_flux.is_right(i % 7));
  }
  checker->leave_loop();
  EXPECT_THAT(checker->hazards(), testing::IsEmpty()) << checker->hazards().front().sentence;
}

TEST(Pages, RefuseTwoGroupsInOneSlot) {
  Pages pages(std::make_shared<CpuPageDevice>(), at::kCPU, {.prefetch = 0});
  const Model model(pages, 3);
  pages.enter(0);
  EXPECT_THAT(message_of<std::exception>([&] { pages.enter(1); }),
              HasSubstr("weights of blocks.1 are asked for while those of blocks.0 are in use"));
}

TEST(Pages, NeitherWaitNorAllocateInTheLoop) {
  const auto checker = std::make_shared<OrderChecker>(std::make_shared<SimulatedDevice>());
  Pages pages(checker, at::kCPU, {.prefetch = 1, .resident = 2});
  const Model model(pages, 9);
  checker->enter_loop();
  for (int i = 0; i < 3; ++i) step(pages, {0, 1, 2, 3, 4, 5, 6, 7, 8}, [](int) {});
  checker->leave_loop();
  EXPECT_THAT(checker->hazards(), testing::IsEmpty());
}

}  // namespace braid::pages_test
