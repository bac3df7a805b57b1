// Detects missing synchronisation. It sits between pages and a device and keeps a vector clock
// (Lamport 1978; Mattern 1989) for the host and each stream. It reports every access not ordered
// after the one it depends on, even if it went well this time. It also reports unexpected contents,
// and needless waits and copies, which cost overlap.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "weights/paging/device.h"

namespace braid {

struct Hazard {
  enum class Kind {
    kReadAfterWrite,   // the slot is used before its copy is certain to be done
    kWriteAfterRead,   // the slot is overwritten before its use is certain to be done
    kWriteAfterWrite,  // two unordered copies into one slot
    kUseAfterFree,     // memory is freed before its use is certain to be done, or used later
    kStale,            // the slot holds other or incomplete contents
    kHostWait,         // the host waits inside the loop
    kNeedlessWait,     // compute waits for a copy it is not about to use
    kNeedlessCopy,     // the slot already held these contents
    kAllocation,       // memory or an event is created inside the loop
  };
  Kind kind;
  std::string sentence;  // names both sites
};

class OrderChecker : public PageDevice {
 public:
  explicit OrderChecker(std::shared_ptr<PageDevice> device) : device_(std::move(device)) {}

  // Inside the loop, once all is loaded, the host must not wait and nothing may be allocated.
  void enter_loop() { in_loop_ = true; }
  void leave_loop() { in_loop_ = false; }
  const std::vector<Hazard>& hazards() const { return hazards_; }

  bool is_asynchronous() const override { return device_->is_asynchronous(); }
  Slot allocate(std::int64_t bytes, Site site) override;
  void free(Slot slot, Site site) override;
  Tensor memory(Slot slot) const override { return device_->memory(slot); }
  Event make_event(Site site) override;
  void record(Event event, StreamName stream, Site site) override;
  void wait(StreamName stream, Event event, Site site) override;
  void copy(StreamName stream, Slot to, const PageBytes& from, Site site) override;
  void use(StreamName stream, Slot slot, const PageBytes& contents, Site site) override;
  void synchronize(Event event, Site site) override;

 private:
  static constexpr std::size_t kHost = 2, kActors = 3;  // after the streams
  using Clock = std::array<std::uint64_t, kActors>;

  struct Access {
    std::size_t actor;
    std::uint64_t time;  // on the actor's own clock
    Site site;
    std::string what;  // "the copy of double_blocks.3"
  };
  struct SlotState {
    std::optional<Access> copied, freed;
    std::map<std::size_t, Access> used;  // the last, by actor
    PageBytes contents;
  };
  struct EventState {
    Clock clock{};
    std::optional<int> copied_slot;  // by the last copy before the event
  };

  Access step(StreamName stream, const Site& site, std::string what);
  bool is_ordered(const Access& before, const Clock& clock) const;
  void complain(Hazard::Kind kind, const Access& now, const std::string& fact,
                const std::optional<Access>& before = {});
  void check_unused(Hazard::Kind kind, const SlotState& slot, const Access& now,
                    const Clock& clock);
  void check_waits(Slot slot, const Access& now);
  void check_contents(const SlotState& slot, const PageBytes& wanted, const Access& now);
  void check_outside_loop(Hazard::Kind kind, const Site& site, const std::string& what);

  std::shared_ptr<PageDevice> device_;
  std::array<Clock, kActors> clocks_{};
  std::map<int, SlotState> slots_;
  std::map<int, EventState> events_;
  std::array<std::optional<int>, 2> last_copied_;  // slot, by stream
  std::vector<std::pair<int, Site>> waited_;       // slots whose copies compute waits for
  bool in_loop_ = false;
  std::vector<Hazard> hazards_;
};

}  // namespace braid
