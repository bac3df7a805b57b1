#include "weights/paging/pages.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "weights/paging/cpu_device.h"

namespace braid {
namespace {

constexpr std::int64_t kAlignment = 256;  // of a tensor in a page
constexpr std::int64_t kPageAlignment = 4096;

std::int64_t round_up(std::int64_t bytes, std::int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

std::int64_t bytes_of(const Tensor& tensor) {
  return tensor.numel() * std::int64_t(tensor.element_size());
}

// The tensor that lies at `offset` of `bytes`.
void show(Tensor& view, const Tensor& bytes, std::int64_t offset, at::IntArrayRef shape) {
  const auto size = std::int64_t(view.element_size());
  view.set_(bytes.storage(), (bytes.storage_offset() + offset) / size, shape,
            c10::contiguous_strides(shape));
}

std::span<std::byte> span_of(const Tensor& bytes) {
  return {static_cast<std::byte*>(bytes.mutable_data_ptr()), std::size_t(bytes.numel())};
}

// Which of `count` groups stay.
std::vector<bool> residents(int count, int stay, Residency residency) {
  std::vector<bool> is_resident(std::size_t(count), stay < 0 || stay >= count);
  if (stay < 0 || stay >= count) return is_resident;
  for (int i = 0; i < stay; ++i)
    is_resident[std::size_t(residency == Residency::kLeading ? i : i * count / stay)] = true;
  return is_resident;
}

}  // namespace

Pages::Pages(std::shared_ptr<PageDevice> device, at::Device where, PageOptions options)
    : device_(std::move(device)), where_(where), options_(std::move(options)) {
  require(options_.prefetch >= 0 && options_.prefetch <= 64,
          "the number of groups that are copied ahead should lie between 0 and 64, it is ",
          options_.prefetch);
}

Pages::~Pages() {
  for (const auto& slot : slots_) {
    try {
      device_->synchronize(slot.copied);
      device_->synchronize(slot.used);
    } catch (const std::exception&) {
      // whoever waited for the copy has heard of it
    }
    device_->free(slot.memory);
  }
}

int Pages::add_group(const std::string& name) {
  close_group();
  groups_.emplace_back();
  groups_.back().page.name = name;
  return int(groups_.size()) - 1;
}

Tensor Pages::add(const Tensor& tensor) {
  auto& group = groups_.back();
  const auto offset = round_up(group.page.size, kAlignment);
  const auto view = at::empty({0}, at::TensorOptions(tensor.scalar_type()).device(where_));
  group.places.push_back({view, offset, tensor.sizes().vec()});
  group.page.size = offset + bytes_of(tensor);
  pending_.push_back(tensor);
  return view;
}

// The group's tensors, one after the other, become its page.
void Pages::close_group() {
  if (groups_.empty() || pending_.empty()) return;
  auto& group = groups_.back();
  group.page.size = std::max(kPageAlignment, round_up(group.page.size, kPageAlignment));
  const auto room = options_.folder ? PageFile::kHeader : 0;
  const auto bytes = aligned_bytes(room + group.page.size);
  Tensor(bytes).zero_();
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const auto& place = group.places[i];
    bytes.narrow(0, room + place.offset, bytes_of(pending_[i]))
        .view(pending_[i].scalar_type())
        .view(place.shape)
        .copy_(pending_[i]);
    pending_[i] = Tensor();
  }
  pending_.clear();
  store(group, bytes);
}

void Pages::store(Group& group, Tensor bytes) {
  group.page.version = ++last_version_;
  if (options_.folder) {
    std::string recipe = group.page.name;
    for (const auto& place : group.places)
      recipe += text_of("; ", place.view.scalar_type(), " ", at::IntArrayRef(place.shape));
    group.page.file = options_.folder->put(span_of(bytes), recipe);
    return;
  }
  const bool pins = options_.pin == Pin::kAlways && !where_.is_cpu();
  group.page.memory = pins ? bytes.pin_memory() : bytes;
}

int Pages::make_slot(std::int64_t bytes) {
  slots_.push_back({device_->allocate(bytes), device_->make_event(), device_->make_event()});
  slot_bytes_ += bytes;
  // Memory that is given out again may still be in use by computations that were asked for before.
  device_->record(slots_.back().used, StreamName::kCompute);
  return int(slots_.size()) - 1;
}

void Pages::show_views(const Group& group) {
  const auto bytes = device_->memory(slots_[std::size_t(group.slot)].memory);
  for (const auto& place : group.places) {
    auto view = place.view;
    show(view, bytes, place.offset, place.shape);
  }
}

void Pages::finish() {
  close_group();
  const auto stay = residents(int(groups_.size()), options_.resident, options_.residency);
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    groups_[i].is_resident = stay[i];
    if (stay[i]) continue;
    paged_.push_back(int(i));
    largest = std::max(largest, groups_[i].page.size);
  }
  const auto shared = std::min<std::size_t>(paged_.size(), std::size_t(options_.prefetch) + 1);
  for (std::size_t i = 0; i < shared; ++i) make_slot(largest);
  for (std::size_t i = 0; i < paged_.size(); ++i)
    groups_[std::size_t(paged_[i])].slot = int(i % shared);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    auto& group = groups_[i];
    if (group.is_resident) {
      group.slot = make_slot(group.page.size);
      fetch(int(i));
      device_->synchronize(slots_[std::size_t(group.slot)].copied);
      group.page.memory = Tensor();
    }
    show_views(group);
  }
}

// Copies a group into its slot as soon as what used the slot last is done.
void Pages::fetch(int index) {
  const auto& group = groups_[std::size_t(index)];
  auto& slot = slots_[std::size_t(group.slot)];
  device_->wait(StreamName::kCopy, slot.used);
  device_->copy(StreamName::kCopy, slot.memory, group.page);
  device_->record(slot.copied, StreamName::kCopy);
  slot.holds = index;
  bytes_copied_ += group.page.size;
}

int Pages::next_paged(int group) const {
  const auto next = std::upper_bound(paged_.begin(), paged_.end(), group);
  return next == paged_.end() ? paged_.front() : *next;
}

// Keeps the slots filled with what comes next. A slot in use is left alone; leave() asks again.
void Pages::prefetch_after(int group) {
  if (paged_.empty()) return;
  auto next = group;
  for (int ahead = 0; ahead < options_.prefetch; ++ahead) {
    next = next_paged(next);
    if (next == group) return;
    const auto& slot = slots_[std::size_t(groups_[std::size_t(next)].slot)];
    if (slot.holds == next) continue;
    if (slot.is_in_use) return;
    // what it holds comes sooner than `next`
    for (auto sooner = next_paged(group); sooner != next; sooner = next_paged(sooner))
      if (slot.holds == sooner) return;
    fetch(next);
  }
}

void Pages::enter(int index) {
  const auto& group = groups_[std::size_t(index)];
  auto& slot = slots_[std::size_t(group.slot)];
  check(!slot.is_in_use, "the weights of ", group.page.name, " are asked for while those of ",
        groups_[std::size_t(std::max(slot.holds, 0))].page.name, " are in use");
  if (slot.holds != index) fetch(index);
  if (!group.is_resident) device_->wait(StreamName::kCompute, slot.copied);
  slot.is_in_use = true;
  device_->use(StreamName::kCompute, slot.memory, group.page);
  // An asynchronous device is first given its computations: a page may have to be read from a file.
  if (!device_->is_asynchronous()) prefetch_after(index);
}

void Pages::leave(int index) {
  const auto& group = groups_[std::size_t(index)];
  auto& slot = slots_[std::size_t(group.slot)];
  device_->use(StreamName::kCompute, slot.memory, group.page);
  device_->record(slot.used, StreamName::kCompute);
  slot.is_in_use = false;
  prefetch_after(index);
}

std::int64_t Pages::page_bytes() const {
  return std::accumulate(
      groups_.begin(), groups_.end(), std::int64_t(0),
      [](std::int64_t sum, const Group& group) { return sum + group.page.size; });
}

}  // namespace braid
