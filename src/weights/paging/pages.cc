#include "weights/paging/pages.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "weights/paging/locked_memory.h"
#include "weights/paging/page_bytes.h"
#include "weights/sources/identity.h"

namespace braid {
namespace {

// Points `view` at `offset` of `bytes`.
void show(Tensor& view, const Tensor& bytes, std::int64_t offset, at::IntArrayRef shape) {
  const auto size = std::int64_t(view.element_size());
  view.set_(bytes.storage(), (bytes.storage_offset() + offset) / size, shape,
            c10::contiguous_strides(shape));
}

}  // namespace

Pages::Pages(std::shared_ptr<PageDevice> device, at::Device where, PageOptions options)
    : device_(std::move(device)), where_(where), options_(std::move(options)) {
  require(options_.prefetch >= 0 && options_.prefetch <= 64,
          "the number of groups to copy ahead should lie between 0 and 64, it is ",
          options_.prefetch);
}

Pages::~Pages() {
  for (const auto& slot : slots_) {
    try {
      device_->synchronize(slot.copied);
      device_->synchronize(slot.used);
    } catch (const std::exception&) {
      // whoever waited for the copy has got its error
    }
    device_->free(slot.memory);
  }
}

int Pages::add_group(const std::string& name, PageUse use, int blocks) {
  close_group();
  groups_.push_back({.page = {.name = name}, .use = use, .blocks = blocks});
  return int(groups_.size()) - 1;
}

Tensor Pages::add(const Tensor& tensor) { return add(source_of(tensor)).front(); }

std::vector<Tensor> Pages::add(PageSource source) {
  auto& group = groups_.back();
  std::vector<Tensor> views;
  for (const auto& [dtype, shape] : source.tensors) {
    const auto offset = round_up(group.page.size, kTensorAlignment);
    const auto view = at::empty({0}, at::TensorOptions(dtype).device(where_));
    group.places.push_back({view, offset, shape});
    group.page.size = offset + group.places.back().size();
    views.push_back(view);
  }
  sources_.push_back(std::move(source));
  return views;
}

std::int64_t Pages::Place::size() const {
  return c10::multiply_integers(shape) * std::int64_t(view.element_size());
}

Tensor Pages::Place::in(const Tensor& contents) const {
  return contents.narrow(0, offset, size()).view(view.scalar_type()).view(shape);
}

// Describes where the tensors lie and what they are made of.
std::string Pages::recipe_of(const Group& group, const std::vector<PageSource>& sources) {
  std::string recipe;
  for (const auto& place : group.places)
    recipe += text_of(place.offset, ": ", place.view.scalar_type(), " ",
                      at::IntArrayRef(place.shape), "\n");
  for (const auto& source : sources) recipe += source.identity() + "\n";
  return recipe;
}

// Includes room for a file header if the page will be stored in a file.
Tensor Pages::room_for(const Group& group) const {
  return aligned_bytes((options_.folder ? PageFile::kHeader : 0) + group.page.size);
}

// Builds the sources' tensors, each at its place.
Tensor Pages::made_of(const Group& group, const std::vector<PageSource>& sources) const {
  const auto bytes = room_for(group);
  const auto contents = bytes.narrow(0, bytes.numel() - group.page.size, group.page.size);
  contents.zero_();
  auto place = group.places.begin();
  for (const auto& source : sources) {
    for (const auto& tensor : source.make()) {
      place->in(contents).copy_(tensor);
      ++place;
    }
    if (source.done) source.done();
  }
  return bytes;
}

// Builds the page of the group loaded last, or finds it on disk.
void Pages::close_group() {
  if (groups_.empty() || groups_.back().page.version != 0) return;
  auto& group = groups_.back();
  const auto sources = std::exchange(sources_, {});
  group.page.version = ++last_version_;
  group.page.size = std::max(kPageAlignment, round_up(group.page.size, kPageAlignment));
  if (where_.is_meta()) return;  // a dry run has no contents
  if (!options_.folder) {
    group.page.memory = made_of(group, sources);
    return;
  }
  const auto id = id_of(recipe_of(group, sources));
  group.page.file = options_.folder->find(id, group.page.size);
  if (group.page.file) {
    for (const auto& source : sources)
      if (source.done) source.done();
    return;
  }
  const auto bytes = made_of(group, sources);
  check(id_of(recipe_of(group, sources)) == id, "the weights of ", group.page.name,
        " have changed while they were read");
  group.page.file = options_.folder->put(span_of(bytes), id);
}

int Pages::make_slot(std::int64_t bytes) {
  slots_.push_back({device_->allocate(bytes), device_->make_event(), device_->make_event()});
  slot_bytes_ += bytes;
  // Reallocated memory may still be in use by computations queued earlier.
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

std::vector<bool> Pages::resident() const {
  std::vector<GroupCost> costs;
  for (const auto& group : groups_)
    costs.push_back({.bytes = group.page.size, .use = group.use, .blocks = group.blocks});
  return resident_groups(costs, options_.resident, options_.residency);
}

// Loading order; the repeated groups form a cycle.
int Pages::first_guess_behind(int index) const {
  const auto count = int(groups_.size());
  const auto is_once = [&](int i) { return groups_[std::size_t(i)].use == PageUse::kOnce; };
  auto next = (index + 1) % count;
  while (!is_once(index) && is_once(next)) next = (next + 1) % count;
  return next;
}

void Pages::finish() {
  close_group();
  const auto stay = resident();
  std::int64_t largest = 0;
  int paged = 0;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    groups_[i].followed_by = first_guess_behind(int(i));
    groups_[i].is_resident = stay[i];
    if (stay[i]) continue;
    ++paged;
    largest = std::max(largest, groups_[i].page.size);
  }
  const int shared = std::min(paged, options_.prefetch + 1);
  for (int i = 0; i < shared; ++i) make_slot(largest);
  for (int slot = 0; auto& group : groups_)
    if (!group.is_resident) group.slot = slot++ % shared;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    auto& group = groups_[i];
    if (group.is_resident) {
      group.slot = make_slot(group.page.size);
      place(int(i));
    }
    show_views(group);
  }
  if (options_.pin == Pin::kAlways && !where_.is_cpu()) lock_pages();
}

// Devices copy directly only from pages' memory, locked in place at its exact size. All pages that
// stay on the host are locked, or none: a system that refuses one, as WSL2 does from about 1 GB on,
// would have nothing left for staging memory, through which the others pass.
void Pages::lock_pages() {
  std::vector<std::pair<PageBytes*, Tensor>> all;
  for (auto& group : groups_) {
    if (!group.page.memory.defined()) continue;
    const auto memory = locked(group.page.memory);
    if (!memory) return;
    all.emplace_back(&group.page, *memory);
  }
  for (auto& [page, memory] : all) {
    page->memory = std::move(memory);
    page->is_locked = true;
  }
}

// Copies a resident group, once.
void Pages::place(int index) {
  auto& group = groups_[std::size_t(index)];
  auto& slot = slots_[std::size_t(group.slot)];
  device_->copy(StreamName::kCompute, slot.memory, group.page);
  device_->record(slot.copied, StreamName::kCompute);
  slot.holds = index;
  group.page.memory = Tensor();
}

// Copies a group into its slot once the slot's last use is done.
void Pages::fetch(int index) {
  const auto& group = groups_[std::size_t(index)];
  auto& slot = slots_[std::size_t(group.slot)];
  device_->wait(StreamName::kCopy, slot.used);
  device_->copy(StreamName::kCopy, slot.memory, group.page);
  device_->record(slot.copied, StreamName::kCopy);
  slot.holds = index;
}

// The next group that needs a copy; `group` if there is none.
int Pages::next_paged(int group) const {
  auto next = groups_[std::size_t(group)].followed_by;
  for (std::size_t i = 0; i < groups_.size() && next != group; ++i) {
    if (!groups_[std::size_t(next)].is_resident) return next;
    next = groups_[std::size_t(next)].followed_by;
  }
  return group;
}

// Keeps the slots filled with upcoming groups. A slot in use is left alone; leave() tries again. A
// copy that fails is left to enter(), which tries again and throws.
void Pages::prefetch_after(int group) noexcept try {
  auto next = group;
  for (int ahead = 0; ahead < options_.prefetch; ++ahead) {
    next = next_paged(next);
    if (next == group) return;
    const auto& slot = slots_[std::size_t(groups_[std::size_t(next)].slot)];
    if (slot.holds == next) continue;
    if (slot.is_in_use) return;
    // its current group is needed before `next`
    for (auto sooner = next_paged(group); sooner != next; sooner = next_paged(sooner))
      if (slot.holds == sooner) return;
    fetch(next);
  }
} catch (const std::exception&) {
}

// A group used once does not recur after a repeated one.
void Pages::learn_order(int index) {
  if (last_used_ >= 0 && last_used_ != index) {
    auto& last = groups_[std::size_t(last_used_)];
    const bool is_once = groups_[std::size_t(index)].use == PageUse::kOnce;
    if (!is_once || last.use == PageUse::kOnce) last.followed_by = index;
  }
  last_used_ = index;
}

// Makes computations wait for the group's copy. If that failed, those ahead may have, too.
void Pages::await(int index) {
  const auto& group = groups_[std::size_t(index)];
  if (group.is_resident) return;
  try {
    device_->wait(StreamName::kCompute, slots_[std::size_t(group.slot)].copied);
  } catch (...) {
    for (const auto& other : groups_)
      if (auto& slot = slots_[std::size_t(other.slot)]; !other.is_resident && !slot.is_in_use)
        slot.holds = -1;
    throw;
  }
}

void Pages::enter(int index) {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  const auto& group = groups_[std::size_t(index)];
  auto& slot = slots_[std::size_t(group.slot)];
  check(!slot.is_in_use, "the weights of ", group.page.name, " are asked for while those of ",
        groups_[std::size_t(std::max(slot.holds, 0))].page.name, " are in use");
  if (slot.holds != index) fetch(index);
  await(index);
  slot.is_in_use = true;
  learn_order(index);
  device_->use(StreamName::kCompute, slot.memory, group.page);
  // An asynchronous device first gets its computations: a page may have to be read from a file.
  if (!device_->is_asynchronous()) prefetch_after(index);
}

void Pages::leave(int index) noexcept {
  const auto& group = groups_[std::size_t(index)];
  auto& slot = slots_[std::size_t(group.slot)];
  try {
    device_->use(StreamName::kCompute, slot.memory, group.page);
    device_->record(slot.used, StreamName::kCompute);
  } catch (...) {
    failure_ = std::current_exception();
  }
  slot.is_in_use = false;
  prefetch_after(index);
}

std::int64_t Pages::page_bytes() const {
  return std::accumulate(
      groups_.begin(), groups_.end(), std::int64_t(0),
      [](std::int64_t sum, const Group& group) { return sum + group.page.size; });
}

}  // namespace braid
