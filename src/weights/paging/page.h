// A group of Pages as a value; an empty Page stands for weights that are always on the device.
#pragma once

#include "weights/paging/pages.h"

namespace braid {

class Page {
 public:
  class InUse {
   public:
    explicit InUse(const Page& page) : page_(page) {
      if (page_.pages_) page_.pages_->enter(page_.group_);
    }
    ~InUse() {
      if (page_.pages_) page_.pages_->leave(page_.group_);
    }
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;

   private:
    const Page& page_;
  };

  Page() = default;
  Page(std::shared_ptr<Pages> pages, int group) : pages_(std::move(pages)), group_(group) {}

  [[nodiscard]] InUse use() const& { return InUse(*this); }
  InUse use() const&& = delete;  // InUse refers to the page
  Pages* pages() const { return pages_.get(); }

 private:
  std::shared_ptr<Pages> pages_;
  int group_ = 0;
};

}  // namespace braid
