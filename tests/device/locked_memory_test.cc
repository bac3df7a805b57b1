// How much of the host's memory is locked for a GPU's copies.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/memory_meter.h"
#include "fake_gpu.h"
#include "paged_model.h"
#include "pipeline/engine/engine.h"
#include "pipeline/planner/costs/memory.h"
#include "weights/paging/accelerator_device.h"

namespace braid::locked_memory_test {

namespace fs = std::filesystem;

const at::Device kGpu(at::kCUDA, 0);
constexpr int kGroups = 7;

struct Folder {
  Folder() {
    auto name = (fs::temp_directory_path() / "braid_pages_XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }

  fs::path path;
};

PageOptions page_options(const Offload& o) {
  return {.prefetch = o.prefetch,
          .resident = o.resident,
          .residency = o.residency,
          .pin = o.pin,
          .folder = o.folder.empty() ? nullptr : std::make_shared<const PageFolder>(o.folder)};
}

void use_all(Pages& pages) {
  for (int group = 0; group < kGroups; ++group) {
    pages.enter(group);
    pages.leave(group);
  }
}

// The pages that are copied again and again, or as much as the slots that they go through.
std::int64_t bytes_to_lock(const Offload& o) {
  const auto pages = PagedModel::page_bytes(kGroups);
  std::vector<GroupCost> groups;
  for (const auto bytes : pages) groups.push_back({.bytes = bytes});
  const auto stay = resident_groups(groups, o.resident, o.residency);
  std::int64_t sum = 0, largest = 0, count = 0;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (stay[i]) continue;
    sum += pages[i];
    largest = std::max(largest, pages[i]);
    ++count;
  }
  if (o.pin == Pin::kNever) return 0;
  const bool is_direct = o.pin == Pin::kAlways && o.folder.empty();
  return is_direct ? sum : largest * std::min(count, std::int64_t(o.prefetch) + 1);
}

void expect_exactly(const Offload& offload) {
  {
    Pages pages(std::make_shared<AcceleratorPageDevice>(kGpu, offload.pin), kGpu,
                page_options(offload));
    const PagedModel model(pages, kGroups);
    use_all(pages);
    const auto want = bytes_to_lock(offload);
    EXPECT_EQ(fake_gpu::num_locked_bytes(), want) << offload.prefetch << " " << offload.resident;
    use_all(pages);
    EXPECT_EQ(fake_gpu::num_locked_bytes(), want) << "after a second step";
  }
  EXPECT_EQ(fake_gpu::num_locked_bytes(), 0) << "when all is over";
}

// Exactly the pages that are copied again and again: nothing of those that stay on the device, and
// no rounding up.
TEST(LockedMemory, IsOfPagesThatAreCopied) {
  const Folder folder;
  for (const auto pin : {Pin::kAlways, Pin::kOnTheFly, Pin::kNever})
    for (const auto& where : {fs::path(), folder.path})
      for (const int prefetch : {0, 1, 9})
        for (const int resident : {0, 3, -1})
          expect_exactly({.prefetch = prefetch, .resident = resident, .pin = pin, .folder = where});
}

// All of the bundled model, after a picture.
TEST(SlowLockedMemory, IsWhatIsPlanned) {
  const Folder folder;
  const Request request{
      .prompts = {"a red circle"}, .width = 32, .height = 32, .steps = 1, .max_sequence_length = 8};
  for (const auto& [mode, pin, where] :
       {std::tuple(OffloadMode::kModel, Pin::kAlways, fs::path()),
        std::tuple(OffloadMode::kBlock, Pin::kAlways, fs::path()),
        std::tuple(OffloadMode::kLeaf, Pin::kOnTheFly, fs::path()),
        std::tuple(OffloadMode::kBlock, Pin::kNever, fs::path()),
        std::tuple(OffloadMode::kModel, Pin::kAlways, folder.path),
        std::tuple(OffloadMode::kBlock, Pin::kAlways, folder.path)}) {
    PipelineOptions options{.model = fs::path(BRAID_SOURCE_DIR) / "models/demo",
                            .dtype = Dtype::kFloat32,
                            .devices = {"cuda:0"}};
    options.memory.offload = {
        .transformer = mode, .text = mode, .vae = mode, .resident = 2, .pin = pin, .folder = where};
    const Engine engine(options, {});
    (void)engine.generate(request, {});
    const auto job = job_of(deploy(options), request);
    const auto planned = predict_bytes(job, {}, 0, whole_transformer(job.shape()));
    EXPECT_EQ(fake_gpu::num_locked_bytes(), planned.locked)
        << "mode " << int(mode) << ", pin " << int(pin) << ", " << where;
  }
}

TEST(LockedMemory, IsDoneWithoutWhereTheSystemRefuses) {
  const fake_gpu::RefuseLocks refuse;
  for (const auto pin : {Pin::kAlways, Pin::kOnTheFly}) {
    Pages pages(std::make_shared<AcceleratorPageDevice>(kGpu, pin), kGpu,
                {.prefetch = 1, .pin = pin});
    const PagedModel model(pages, kGroups);
    for (int group = 0; group < kGroups; ++group) {
      pages.enter(group);
      EXPECT_TRUE(
          at::equal(model.views[std::size_t(group)].cpu(), model.wanted[std::size_t(group)]));
      pages.leave(group);
    }
  }
}

// Each of these pages would be locked, but not all of them, nor one more for each slot.
TEST(LockedMemory, IsOfSlotsWhereTheSystemHasTooLittleForPages) {
  const auto bytes = PagedModel::page_bytes(kGroups);
  const auto of_slots = 2 * *std::max_element(bytes.begin(), bytes.end());
  const fake_gpu::LocksAtMost limit(of_slots);
  {
    Pages pages(std::make_shared<AcceleratorPageDevice>(kGpu, Pin::kAlways), kGpu,
                {.prefetch = 1, .pin = Pin::kAlways});
    const PagedModel model(pages, kGroups);
    EXPECT_EQ(fake_gpu::num_locked_bytes(), 0) << "some pages are locked, others cannot be";
    for (int group = 0; group < kGroups; ++group) {
      pages.enter(group);
      EXPECT_TRUE(
          at::equal(model.views[std::size_t(group)].cpu(), model.wanted[std::size_t(group)]));
      pages.leave(group);
    }
    EXPECT_EQ(fake_gpu::num_locked_bytes(), of_slots);
  }
  EXPECT_EQ(fake_gpu::num_locked_bytes(), 0) << "when all is over";
}

// Unlocked staging memory would be as large as a page, and every page copied once more.
TEST(LockedMemory, IsNotReplacedByUnlockedWhereTheSystemRefuses) {
  constexpr std::int64_t kBytes = 64 << 20;
  const fake_gpu::RefuseLocks refuse;
  AcceleratorPageDevice accelerator(kGpu, Pin::kOnTheFly);
  PageDevice& device = accelerator;
  const auto slot = device.allocate(kBytes);
  device.memory(slot).zero_();
  const PageBytes page{
      .name = "page", .version = 1, .size = kBytes, .memory = aligned_bytes(kBytes)};
  page.memory.fill_(3);
  MemoryMeter meter;
  if (!meter.is_exact()) GTEST_SKIP() << "peaks are not counted";
  (void)meter.take();
  const auto before = meter.take();
  device.copy(StreamName::kCopy, slot, page);
  EXPECT_LT(meter.take(), before + kBytes / 2);
  EXPECT_TRUE(device.memory(slot).eq(3).all().item<bool>());
}

}  // namespace braid::locked_memory_test
