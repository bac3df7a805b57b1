// What pages ask of a device: two streams, events and memory. Narrow, so that a device can be
// simulated and what is asked of it checked (`OrderChecker`).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <source_location>
#include <string>

namespace braid {

using at::Tensor;
using Site = std::source_location;

class PageFile;

enum class StreamName { kCompute, kCopy };

struct Event {
  int id;
};
struct Slot {
  int id;
};

// The contents of one page, wherever they lie. Different contents have different versions.
struct PageBytes {
  std::string name;  // of the group of layers
  std::uint64_t version = 0;
  std::int64_t size = 0;  // bytes
  Tensor memory = {};     // kByte [size], of the host; undefined for a file
  std::shared_ptr<const PageFile> file = {};
  bool is_locked = false;  // the memory: devices copy from it by themselves
};

// Puts the page's bytes at `target`, which has room for them. Throws Error for a damaged file.
void read_page(const PageBytes& page, std::byte* target);

class PageDevice {
 public:
  virtual ~PageDevice() = default;

  // Whether computations go on behind the host's back.
  virtual bool is_asynchronous() const = 0;

  // Outside of the loop. Memory that is freed may be given out again at once.
  virtual Slot allocate(std::int64_t bytes, Site site = Site::current()) = 0;
  virtual void free(Slot slot, Site site = Site::current()) = 0;
  virtual Tensor memory(Slot slot) const = 0;  // kByte
  virtual Event make_event(Site site = Site::current()) = 0;

  // Each is queued behind what its stream was given before. An event stands for what its stream had
  // been given when it was last recorded; to wait for one that never was is to wait for nothing.
  virtual void record(Event event, StreamName stream, Site site = Site::current()) = 0;
  virtual void wait(StreamName stream, Event event, Site site = Site::current()) = 0;
  // On the stream of computations, outside of the loop, the host waits until it is done.
  virtual void copy(StreamName stream, Slot to, const PageBytes& from,
                    Site site = Site::current()) = 0;
  // Says that the stream's work at this place reads the slot and expects these contents.
  virtual void use(StreamName stream, Slot slot, const PageBytes& contents,
                   Site site = Site::current()) = 0;

  // The host waits for the event. Throws what a queued operation has thrown.
  virtual void synchronize(Event event, Site site = Site::current()) = 0;
};

}  // namespace braid
