#include "comm/board.h"

#include <algorithm>

namespace braid {

Board::Board(int size, std::shared_ptr<Fate> fate)
    : fate_(std::move(fate)),
      slots_(std::size_t(size)),
      arrivals_(std::size_t(size)),
      mail_(std::size_t(size)) {}

std::string Board::absent() const {
  std::string names;
  for (std::size_t rank = 0; rank < arrivals_.size(); ++rank)
    if (arrivals_[rank] == meetings_) names += (names.empty() ? "" : ", ") + std::to_string(rank);
  return names;
}

void Board::meet(int rank, Patience patience) {
  std::unique_lock lock(mutex_);
  fate_->check();
  const auto meeting = ++arrivals_[std::size_t(rank)];
  const auto all_came = [&] {
    return std::all_of(arrivals_.begin(), arrivals_.end(), [&](auto n) { return n >= meeting; });
  };
  if (all_came()) {
    meetings_ = std::max(meetings_, meeting);
    changed_.notify_all();
    return;
  }
  fate_->wait(lock, changed_,
              {.has_come = [&] { return meetings_ >= meeting; },
               .name = [&] { return "rank " + absent(); },
               .is_endless = [=] { return patience == Patience::kEndless; }});
}

void Board::send(int to, Letter letter) {
  const std::scoped_lock lock(mutex_);
  mail_[std::size_t(to)].push_back(std::move(letter));
  changed_.notify_all();
}

Board::Letter Board::receive(int at) {
  std::unique_lock lock(mutex_);
  auto& mail = mail_[std::size_t(at)];
  fate_->wait(lock, changed_,
              {.has_come = [&] { return !mail.empty(); },
               .name = [&] { return "the tensor of the rank before rank " + std::to_string(at); }});
  auto letter = std::move(mail.front());
  mail.pop_front();
  return letter;
}

std::shared_ptr<Board> Board::subgroup(const std::vector<int>& ranks, std::uint64_t time) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(subgroups_, [](const auto& made) { return made.second.expired(); });
  auto& known = subgroups_[{fate_->epoch(), time, ranks}];
  auto board = known.lock();
  if (!board) known = board = std::make_shared<Board>(int(ranks.size()), fate_);
  return board;
}

void Board::clear() {
  const std::scoped_lock lock(mutex_);
  slots_.assign(slots_.size(), {});
  mail_.assign(mail_.size(), {});
  arrivals_.assign(arrivals_.size(), 0);
  meetings_ = 0;
  for (const auto& [asked, made] : subgroups_)
    if (const auto board = made.lock()) board->clear();
}

}  // namespace braid
