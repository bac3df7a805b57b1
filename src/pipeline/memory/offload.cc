#include "pipeline/memory/offload.h"

#include "base/error.h"
#include "weights/paging/accelerator_device.h"
#include "weights/paging/cpu_device.h"

namespace braid {
namespace {

std::shared_ptr<PageDevice> device_for(at::Device where, Pin pin) {
  if (where.is_cpu()) return std::make_shared<CpuPageDevice>();
  return std::make_shared<AcceleratorPageDevice>(where, pin);
}

bool is_used(const Offload& o) {
  return o.transformer != OffloadMode::kNone || o.text != OffloadMode::kNone ||
         o.vae != OffloadMode::kNone;
}

}  // namespace

OffloadedParts::OffloadedParts(const Offload& offload, at::Device device,
                               std::shared_ptr<PageDevice> pages_on)
    : offload_(offload), where_(device) {
  require(offload.blocks >= 1 && offload.blocks <= 1024,
          "a group of blocks should have 1 to 1024 of them, it has ", offload.blocks);
  if (!is_used(offload)) return;
  device_ = pages_on ? std::move(pages_on) : device_for(device, offload.pin);
  if (offload.checks_order) {
    checker_ = std::make_shared<OrderChecker>(device_);
    device_ = checker_;
  }
  if (!offload.folder.empty())
    folder_ = std::make_shared<const PageFolder>(offload.folder, offload.reads);
}

std::shared_ptr<Pages> OffloadedParts::add_pages(const PageOptions& options) {
  auto pages = std::make_shared<Pages>(device_, where_, options);
  all_.push_back(pages);
  return pages;
}

Paging OffloadedParts::paging_of(OffloadMode mode, int resident) {
  const PageOptions options{.prefetch = mode == OffloadMode::kSequential ? 0 : offload_.prefetch,
                            .resident = resident,
                            .residency = offload_.residency,
                            .pin = offload_.pin,
                            .folder = folder_};
  switch (mode) {
    case OffloadMode::kNone:
      return {};
    case OffloadMode::kModel:
      if (!one_part_at_a_time_)
        one_part_at_a_time_ = add_pages({.prefetch = 0, .pin = offload_.pin, .folder = folder_});
      return {.pages = one_part_at_a_time_, .level = PageLevel::kModel};
    case OffloadMode::kBlock:
      return {.pages = add_pages(options), .level = PageLevel::kBlock, .blocks = offload_.blocks};
    case OffloadMode::kLeaf:
    case OffloadMode::kSequential:
      break;
  }
  return {.pages = add_pages(options), .level = PageLevel::kLeaf};
}

Paging OffloadedParts::transformer() { return paging_of(offload_.transformer, offload_.resident); }

// A ControlNet and the transformer alternate in every step: neither makes room for the other.
Paging OffloadedParts::control() {
  if (offload_.transformer != OffloadMode::kModel) return paging_of(offload_.transformer, 0);
  return {.pages = add_pages({.prefetch = 0, .pin = offload_.pin, .folder = folder_}),
          .level = PageLevel::kModel};
}

Paging OffloadedParts::text() { return paging_of(offload_.text, 0); }

// The autoencoder has no list of blocks: its layers are paged instead.
Paging OffloadedParts::vae() {
  return paging_of(offload_.vae == OffloadMode::kBlock ? OffloadMode::kLeaf : offload_.vae, 0);
}

void OffloadedParts::finish() {
  for (const auto& pages : all_) pages->finish();
  if (checker_) checker_->enter_loop();
}

void OffloadedParts::check_order() const {
  if (!checker_ || checker_->hazards().empty()) return;
  throw Error("weights are moved out of order: " + checker_->hazards().front().sentence);
}

}  // namespace braid
