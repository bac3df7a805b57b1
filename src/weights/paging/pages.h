// Weights that are on the device only while they are needed. The tensors of a group of layers lie
// in one page, a run of bytes; a page is copied whole into a slot of the device, in which its
// tensors have fixed places: views are made once and never move.
//
// Order is by events alone. Computing waits for the copy of the group that it is about to use; a
// copy waits for the last use of the slot that it overwrites. The host waits for nothing.
#pragma once

#include <functional>
#include <vector>

#include "braid/memory.h"
#include "weights/paging/device.h"
#include "weights/paging/page_file.h"
#include "weights/paging/page_layout.h"
#include "weights/paging/page_source.h"

namespace braid {

struct PageOptions {
  int prefetch = 1;  // groups copied ahead; there is one slot more
  int resident = 0;  // groups that have a slot of their own; -1: all
  Residency residency = Residency::kLeading;
  Pin pin = Pin::kNever;
  std::shared_ptr<const PageFolder> folder = {};  // of pages on a disk; none: in host memory
};

class Pages {
 public:
  Pages(std::shared_ptr<PageDevice> device, at::Device where, PageOptions options);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // While loading: groups one after the other, best in the order in which they will be used. Where
  // it is another one, it is known after the first time.
  int add_group(const std::string& name, PageUse use = PageUse::kRepeated);
  // What the source's tensors, of the host, will be on the device. Empty until finish(). Sources
  // are made one after the other when their group is closed; those of a page that is on the disk
  // already are not made at all.
  std::vector<Tensor> add(PageSource source);
  Tensor add(const Tensor& tensor) { return add(source_of(tensor)).front(); }
  void finish();

  // While computing. What runs in between may use the group's tensors.
  void enter(int group);
  void leave(int group);

  // Changes the contents of a group, whose tensors `change` gets in host memory, in the order in
  // which they were added. Waits for the device; not between enter() and leave().
  void rewrite(int group, const std::function<void(std::vector<Tensor>& tensors)>& change);

  std::int64_t slot_bytes() const { return slot_bytes_; }  // of all slots, on the device
  std::int64_t page_bytes() const;                         // of all pages
  std::int64_t bytes_copied() const { return bytes_copied_; }
  int num_slots() const { return int(slots_.size()); }

 private:
  struct Place {
    Tensor view;
    std::int64_t offset;
    std::vector<std::int64_t> shape;

    std::int64_t size() const;                // bytes
    Tensor in(const Tensor& contents) const;  // of the group's page
  };
  struct Group {
    PageBytes page;
    PageUse use;
    std::vector<Place> places = {};
    int slot = -1;
    bool is_resident = false;
    int followed_by = 0;  // the group that was used next the last time
  };
  struct SlotState {
    Slot memory;
    Event copied, used;
    int holds = -1;  // group
    bool is_in_use = false;
  };

  static std::string recipe_of(const Group& group, const std::vector<PageSource>& sources);
  void close_group();
  Tensor room_for(const Group& group) const;
  Tensor made_of(const Group& group, const std::vector<PageSource>& sources) const;
  void lock(Group& group) const;
  Tensor contents_of(const Group& group) const;
  int make_slot(std::int64_t bytes);
  std::vector<bool> resident() const;
  int first_guess_behind(int group) const;
  void show_views(const Group& group);
  void place(int group);
  void fetch(int group);
  void learn_order(int group);
  void prefetch_after(int group);
  int next_paged(int group) const;

  std::shared_ptr<PageDevice> device_;
  at::Device where_;
  PageOptions options_;
  std::vector<Group> groups_;
  std::vector<PageSource> sources_;  // of the group that is being loaded
  int last_used_ = -1;               // group
  std::vector<SlotState> slots_;
  std::int64_t slot_bytes_ = 0, bytes_copied_ = 0;
  std::uint64_t last_version_ = 0;
};

}  // namespace braid
