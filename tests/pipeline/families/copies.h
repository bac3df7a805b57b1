// What pages copy in the steps of a picture.
#pragma once

#include <gmock/gmock.h>

#include "pipeline/planner/costs/held.h"
#include "pipeline/planner/planner.h"
#include "pipeline/proofs/probe.h"
#include "weights/paging/counting_device.h"
#include "weights/paging/order_checker.h"

namespace braid {

// A `Model` copies in the steps of two pictures of `probe` only what is in every step; what comes
// once per picture, at least so many bytes, it copies before them.
template <class Model, class Config>
void expect_copies_once_per_picture(const Config& config, const Probe& probe, std::int64_t bytes) {
  const auto job = surveyed({.family = probe.family, .dtype = at::kFloat});
  for (auto how : {Paging{.level = PageLevel::kBlock}, Paging{.level = PageLevel::kLeaf}}) {
    const auto device = std::make_shared<testing_pages::CountingDevice>();
    const auto checker = std::make_shared<OrderChecker>(device);
    how.pages = std::make_shared<Pages>(checker, at::kCPU, PageOptions{.prefetch = 1});
    const Model model(config, Weights::synthetic({.paging = how}));
    how.pages->finish();
    const auto mode = how.level == PageLevel::kBlock ? OffloadMode::kBlock : OffloadMode::kLeaf;
    const auto planned = pages_of(job.tensors->of(Part::Role::kDenoiser), {}, {.offload = mode});
    const auto of_steps = SlotUse(planned, {.resident = 0}).copied(PageUse::kRepeated).bytes;
    EXPECT_GE(SlotUse(planned, {.resident = 0}).copied(PageUse::kOnce).bytes, bytes);
    checker->enter_loop();
    for (int picture = 0; picture < 2; ++picture) {
      auto in = inputs_of(probe, 1, at::kCPU);
      in.modulations_BM = model.modulations({model.condition(in)}).front();
      if constexpr (requires { model.refine(in, {}); }) in.refined_BTC = model.refine(in, {});
      for (int i = 0; i < 2; ++i) (void)model.advance(in, {});
      const auto before = device->copied_bytes();
      for (int i = 0; i < 3; ++i) (void)model.advance(in, {});
      // Plans count every block in every step; one that still has its slot is not copied again.
      const auto copied = device->copied_bytes() - before;
      EXPECT_GT(copied, 0) << picture;
      EXPECT_LE(copied, 3 * of_steps) << picture;
    }
    checker->leave_loop();
    EXPECT_THAT(checker->hazards(), testing::IsEmpty());
  }
}

}  // namespace braid
