// Weights that are on the device only while they are needed. The tensors of a group of layers form
// one page, a run of bytes. A page is copied whole into a device slot, where its tensors have fixed
// places: views are created once and never move.
//
// Ordering relies on events only: compute waits for the copy of the group it is about to use; a
// copy waits for the last use of the slot it overwrites. The host never waits.
#pragma once

#include <exception>
#include <vector>

#include "braid/memory.h"
#include "weights/paging/device.h"
#include "weights/paging/page_file.h"
#include "weights/paging/page_layout.h"
#include "weights/paging/page_source.h"

namespace braid {

struct PageOptions {
  int prefetch = 1;  // groups copied ahead; they share prefetch + 1 slots
  int resident = 0;  // groups with their own slot; -1: all
  Residency residency = Residency::kLeading;
  Pin pin = Pin::kNever;
  std::shared_ptr<const PageFolder> folder = {};  // for pages on disk; empty means host memory
};

class Pages {
 public:
  Pages(std::shared_ptr<PageDevice> device, at::Device where, PageOptions options);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // While loading: add groups one after another, preferably in the order of use. If that order
  // differs, it is learned during the first pass. `blocks` as in GroupCost.
  int add_group(const std::string& name, PageUse use = PageUse::kRepeated, int blocks = 0);
  // Adds host tensors to the current group and returns their views on the device, empty until
  // finish(). The sources are built, one after another, when their group is closed; for pages
  // already on disk they are not built.
  std::vector<Tensor> add(PageSource source);
  Tensor add(const Tensor& tensor);
  void finish();

  // While computing: code between the two may use the group's tensors. enter() throws what reading
  // the page threw, and what the device threw in the leave() before; both can be tried again.
  void enter(int group);
  void leave(int group) noexcept;

  std::int64_t slot_bytes() const { return slot_bytes_; }  // of all slots, on the device
  std::int64_t page_bytes() const;                         // of all pages

 private:
  struct Place {
    Tensor view;
    std::int64_t offset;
    std::vector<std::int64_t> shape;

    std::int64_t size() const;                // bytes
    Tensor in(const Tensor& contents) const;  // within the page's contents
  };
  struct Group {
    PageBytes page;
    PageUse use;
    int blocks;
    std::vector<Place> places = {};
    int slot = -1;
    bool is_resident = false;
    int followed_by = 0;  // the group used next, the last time
  };
  struct SlotState {
    Slot memory;
    Event copied, used;
    int holds = -1;  // group index
    bool is_in_use = false;
  };

  static std::string recipe_of(const Group& group, const std::vector<PageSource>& sources);
  void close_group();
  Tensor room_for(const Group& group) const;
  Tensor made_of(const Group& group, const std::vector<PageSource>& sources) const;
  void lock_pages();
  int make_slot(std::int64_t bytes);
  std::vector<bool> resident() const;
  int first_guess_behind(int group) const;
  void show_views(const Group& group);
  void place(int group);
  void fetch(int group);
  void await(int group);
  void learn_order(int group);
  void prefetch_after(int group) noexcept;
  int next_paged(int group) const;

  std::shared_ptr<PageDevice> device_;
  at::Device where_;
  PageOptions options_;
  std::vector<Group> groups_;
  std::vector<PageSource> sources_;  // of the group being loaded
  int last_used_ = -1;               // group index
  std::exception_ptr failure_;       // of a leave()
  std::vector<SlotState> slots_;
  std::int64_t slot_bytes_ = 0;
  std::uint64_t last_version_ = 0;
};

}  // namespace braid
