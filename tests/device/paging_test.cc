// Weights that come to a GPU by its own streams while it computes: the right ones at every use, in
// an order that the checker finds nothing in.
#include <gmock/gmock.h>

#include <filesystem>

#include "on_gpu.h"
#include "paged_model.h"
#include "weights/paging/accelerator_device.h"
#include "weights/paging/order_checker.h"

namespace braid::paging_test {

namespace fs = std::filesystem;

constexpr int kGroups = 7;

struct Way {
  std::string name;
  Pin pin;
  int prefetch = 1, resident = 0;
  bool on_disk = false;
};

class PagesOnGpu : public OnGpu, public testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    auto name = (fs::temp_directory_path() / "braid_pages_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  PageOptions options() const {
    const auto& way = GetParam();
    const auto folder = way.on_disk ? std::make_shared<const PageFolder>(folder_) : nullptr;
    return {.prefetch = way.prefetch,
            .resident = way.resident,
            .residency = Residency::kStrided,
            .pin = way.pin,
            .folder = folder};
  }

  fs::path folder_;
};

// The device still computes when the host has given it all: a copy that comes too early shows.
TEST_P(PagesOnGpu, HoldTheRightWeightsAtEveryUse) {
  const auto checker = std::make_shared<OrderChecker>(
      std::make_shared<AcceleratorPageDevice>(gpu(), GetParam().pin));
  Pages pages(checker, gpu(), options());
  const PagedModel model(pages, kGroups);
  const auto slow = at::ones({BRAID_WORK, BRAID_WORK}, at::TensorOptions(at::kFloat).device(gpu()));
  std::vector<Tensor> seen;
  for (int step = 0; step < 3; ++step)
    for (int group = 0; group < kGroups; ++group) {
      pages.enter(group);
      const auto later = at::mm(slow, slow).mul_(0).sum();
      seen.push_back(model.views[std::size_t(group)] + later);
      pages.leave(group);
    }
  for (std::size_t i = 0; i < seen.size(); ++i)
    EXPECT_TRUE(at::equal(seen[i].cpu(), model.wanted[i % kGroups])) << "use " << i;
  EXPECT_THAT(checker->hazards(), testing::IsEmpty()) << checker->hazards().front().sentence;
}

INSTANTIATE_TEST_SUITE_P(
    Ways, PagesOnGpu,
    testing::Values(Way{"locked", Pin::kAlways}, Way{"locked_half_resident", Pin::kAlways, 1, 3},
                    Way{"all_resident", Pin::kAlways, 1, -1}, Way{"far_ahead", Pin::kAlways, 3},
                    Way{"one_at_a_time", Pin::kAlways, 0},
                    Way{"through_locked", Pin::kOnTheFly, 2, 2}, Way{"never_locked", Pin::kNever},
                    Way{"on_disk", Pin::kAlways, 1, 2, true}),
    [](const auto& info) { return info.param.name; });

}  // namespace braid::paging_test
