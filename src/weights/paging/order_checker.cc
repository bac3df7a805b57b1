#include "weights/paging/order_checker.h"

#include <algorithm>

#include "base/error.h"

namespace braid {
namespace {

using Kind = Hazard::Kind;

std::size_t index_of(StreamName stream) { return std::size_t(stream); }

std::string place_of(const Site& site) {
  const std::string file = site.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(site.line());
}

template <class Clock>
void join(Clock& clock, const Clock& other) {
  for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

}  // namespace

// Work the host gives a stream comes after all the host knows of, and after the stream's earlier
// work.
OrderChecker::Access OrderChecker::step(StreamName stream, const Site& site, std::string what) {
  const auto actor = index_of(stream);
  join(clocks_[actor], clocks_[kHost]);
  return {actor, ++clocks_[actor][actor], site, std::move(what)};
}

bool OrderChecker::is_ordered(const Access& before, const Clock& clock) const {
  return clock[before.actor] >= before.time;
}

void OrderChecker::complain(Kind kind, const Access& now, const std::string& fact,
                            const std::optional<Access>& before) {
  auto sentence = text_of(now.what, " at ", place_of(now.site), " ", fact);
  if (before) sentence += text_of(" ", before->what, " at ", place_of(before->site));
  hazards_.push_back({kind, std::move(sentence)});
}

void OrderChecker::check_unused(Kind kind, const SlotState& slot, const Access& now,
                                const Clock& clock) {
  for (const auto& [actor, use] : slot.used)
    if (!is_ordered(use, clock)) complain(kind, now, "does not wait for", use);
}

void OrderChecker::check_outside_loop(Kind kind, const Site& site, const std::string& what) {
  if (in_loop_) complain(kind, {kHost, 0, site, what}, "stops the host inside the loop");
}

Slot OrderChecker::allocate(std::int64_t bytes, Site site) {
  check_outside_loop(Kind::kAllocation, site, "the allocation");
  const auto slot = device_->allocate(bytes, site);
  slots_[slot.id] = {};
  return slot;
}

void OrderChecker::free(Slot slot, Site site) {
  auto& state = slots_[slot.id];
  const Access now{kHost, ++clocks_[kHost][kHost], site, "the freeing of its slot"};
  check_unused(Kind::kUseAfterFree, state, now, clocks_[kHost]);
  if (state.copied && !is_ordered(*state.copied, clocks_[kHost]))
    complain(Kind::kUseAfterFree, now, "does not wait for", state.copied);
  state.freed = now;
  device_->free(slot, site);
}

Event OrderChecker::make_event(Site site) {
  check_outside_loop(Kind::kAllocation, site, "the making of an event");
  return device_->make_event(site);
}

void OrderChecker::record(Event event, StreamName stream, Site site) {
  step(stream, site, "the event");
  events_[event.id] = {clocks_[index_of(stream)], last_copied_[index_of(stream)]};
  device_->record(event, stream, site);
}

void OrderChecker::wait(StreamName stream, Event event, Site site) {
  step(stream, site, "the wait");
  if (const auto known = events_.find(event.id); known != events_.end()) {
    join(clocks_[index_of(stream)], known->second.clock);
    if (stream == StreamName::kCompute && known->second.copied_slot)
      waited_.emplace_back(*known->second.copied_slot, site);
  }
  device_->wait(stream, event, site);
}

void OrderChecker::copy(StreamName stream, Slot to, const PageBytes& from, Site site) {
  const auto now = step(stream, site, "the copy of " + from.name);
  const auto& clock = clocks_[now.actor];
  auto& slot = slots_[to.id];
  if (slot.freed) complain(Kind::kUseAfterFree, now, "comes after", slot.freed);
  if (slot.copied && !is_ordered(*slot.copied, clock))
    complain(Kind::kWriteAfterWrite, now, "does not wait for", slot.copied);
  check_unused(Kind::kWriteAfterRead, slot, now, clock);
  if (slot.copied && slot.contents.version == from.version && slot.contents.size == from.size)
    complain(Kind::kNeedlessCopy, now, "repeats", slot.copied);
  slot.copied = now;
  slot.used.clear();
  slot.contents = from;
  last_copied_[now.actor] = to.id;
  device_->copy(stream, to, from, site);
}

// Waiting for another slot's copy delays compute for nothing.
void OrderChecker::check_waits(Slot slot, const Access& now) {
  for (const auto& [waited, site] : waited_)
    if (waited != slot.id)
      complain(Kind::kNeedlessWait, now, "has waited for",
               Access{0, 0, site, "another slot's copy"});
  waited_.clear();
}

void OrderChecker::check_contents(const SlotState& slot, const PageBytes& wanted,
                                  const Access& now) {
  const auto& held = slot.contents;
  if (held.version != wanted.version)
    complain(Kind::kStale, now, "finds other contents, by", slot.copied);
  else if (held.size < wanted.size)
    complain(Kind::kStale, now, text_of("finds ", held.size, " of ", wanted.size, " bytes, by"),
             slot.copied);
}

void OrderChecker::use(StreamName stream, Slot slot, const PageBytes& contents, Site site) {
  const auto now = step(stream, site, "the use of " + contents.name);
  auto& state = slots_[slot.id];
  check_waits(slot, now);
  if (state.freed) complain(Kind::kUseAfterFree, now, "comes after", state.freed);
  if (!state.copied) {
    complain(Kind::kStale, now, "finds a slot into which nothing was copied");
  } else {
    if (!is_ordered(*state.copied, clocks_[now.actor]))
      complain(Kind::kReadAfterWrite, now, "does not wait for", state.copied);
    check_contents(state, contents, now);
  }
  state.used.insert_or_assign(now.actor, now);
  device_->use(stream, slot, contents, site);
}

void OrderChecker::synchronize(Event event, Site site) {
  check_outside_loop(Kind::kHostWait, site, "a wait of the host");
  if (const auto known = events_.find(event.id); known != events_.end())
    join(clocks_[kHost], known->second.clock);
  device_->synchronize(event, site);
}

}  // namespace braid
