#include "comm/process/membership.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>

namespace braid {
namespace {

constexpr std::size_t kLongestSentence = 992;

}  // namespace

bool is_gone(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const RankIsGone&) {
    return true;
  } catch (...) {
    return false;
  }
}

struct Membership::Control {
  StatusMessage::Kind kind;
  Ending::Kind ending;
  std::int32_t culprit, num_channels;
  std::uint64_t bytes_sent;
  std::int32_t length;
  char sentence[kLongestSentence];
};

struct Membership::Peer {
  int rank;
  Control heard{};  // buffer for this peer's next message
  Wire::Ticket listening = 0;
  Clock::time_point last_heard{};
  bool is_lost = false;
  std::map<Wire::Ticket, std::unique_ptr<Control>> status;
  bool has_left = false;
  std::deque<Ending> endings;  // not yet asked for
};

Membership::Membership(Wire& wire, std::shared_ptr<Fate> fate)
    : wire_(wire), fate_(std::move(fate)) {
  interval_ = std::min<Clock::duration>(std::chrono::seconds(1), fate_->deadline() / 4);
  last_watch_ = last_sign_ = fate_->now();
  for (int r = 0; r < wire.size(); ++r) {
    peers_.push_back(std::make_unique<Peer>());
    peers_.back()->rank = r;
    peers_.back()->last_heard = last_watch_;
    if (r != wire.rank()) listen_to(*peers_.back());
  }
}

Membership::~Membership() = default;

bool Membership::is_other(const Peer& peer) const { return peer.rank != wire_.rank(); }

void Membership::listen_to(Peer& peer) {
  peer.listening = wire_.receive(
      {peer.rank, Wire::kControl, reinterpret_cast<std::byte*>(&peer.heard), sizeof(Control)});
}

void Membership::tell(const StatusMessage& status, const std::vector<std::uint64_t>& bytes_sent) {
  const auto& ending = status.ending;
  for (const auto& peer : peers_) {
    const bool is_needless =
        status.kind == StatusMessage::Kind::kAlive && (peer->has_left || !peer->status.empty());
    if (!is_other(*peer) || peer->is_lost || is_needless) continue;
    auto control = std::make_unique<Control>();
    *control = {.kind = status.kind,
                .ending = ending.kind,
                .culprit = ending.culprit,
                .num_channels = ending.num_channels,
                .bytes_sent = bytes_sent[std::size_t(peer->rank)],
                .length = std::int32_t(std::min(ending.sentence.size(), kLongestSentence)),
                .sentence = {}};
    std::memcpy(control->sentence, ending.sentence.data(), std::size_t(control->length));
    auto* const bytes = reinterpret_cast<std::byte*>(control.get());
    const auto ticket = wire_.send({peer->rank, Wire::kControl, bytes, sizeof(Control)});
    peer->status[ticket] = std::move(control);
  }
}

bool Membership::finish(Wire::Ticket ticket) {
  for (const auto& peer : peers_) {
    if (peer->listening == ticket && is_other(*peer)) {
      hear(*peer);
      return true;
    }
    if (peer->status.erase(ticket) > 0) return true;
  }
  return false;
}

void Membership::hear(Peer& peer) {
  peer.last_heard = fate_->now();
  const auto& heard = peer.heard;
  const auto length = std::clamp<std::int32_t>(heard.length, 0, kLongestSentence);
  const std::string sentence(heard.sentence, std::size_t(length));
  if (heard.kind == StatusMessage::Kind::kGone)
    fate_->fail(heard.culprit, std::make_exception_ptr(RankIsGone(sentence)));
  if (heard.kind == StatusMessage::Kind::kLoss)
    fate_->fail(heard.culprit, std::make_exception_ptr(WorldLost(sentence)));
  {
    const std::scoped_lock lock(mutex_);
    peer.has_left = heard.kind == StatusMessage::Kind::kGoodbye;
    if (heard.kind == StatusMessage::Kind::kEnding) {
      peer.endings.push_back({.kind = heard.ending,
                              .culprit = heard.culprit,
                              .sentence = sentence,
                              .num_channels = heard.num_channels,
                              .bytes_sent = heard.bytes_sent});
      if (is_running_) apply(peer);
    }
  }
  changed_.notify_all();
  if (!peer.has_left) listen_to(peer);
}

// If this rank has not finished the run in which the peer failed.
void Membership::apply(const Peer& peer) {
  const auto& ending = peer.endings.front();
  if (ending.kind != Ending::Kind::kWell)
    fate_->fail(ending.culprit, std::make_exception_ptr(Error(ending.sentence)));
}

void Membership::begin_run() {
  const std::scoped_lock lock(mutex_);
  is_running_ = true;
  for (const auto& peer : peers_)
    if (!peer->endings.empty()) apply(*peer);
}

std::vector<Ending> Membership::await_endings(const Ending& mine) {
  const auto has_told = [&](const auto& peer) {
    return !is_other(*peer) || !peer->endings.empty();
  };
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kGlance,
                            [&] { return std::all_of(peers_.begin(), peers_.end(), has_told); })) {
    if (fate_->is_lost()) throw WorldLost("the world was lost");
    for (const auto& peer : peers_)
      if (peer->has_left && !has_told(peer))
        fate_->fail(peer->rank, std::make_exception_ptr(WorldLost("it has left the others")));
  }
  is_running_ = false;
  std::vector<Ending> endings;
  for (const auto& peer : peers_) {
    endings.push_back(is_other(*peer) ? std::move(peer->endings.front()) : mine);
    if (is_other(*peer)) peer->endings.pop_front();
  }
  return endings;
}

// A rank silent for a deadline is declared dead. Time during which this process itself did not run
// (a suspended machine) does not count.
void Membership::keep_watch() {
  const auto now = fate_->now();
  const bool overslept = now - last_watch_ > fate_->deadline() / 2;
  last_watch_ = now;
  if (now - last_sign_ > interval_) {
    last_sign_ = now;
    tell({.kind = StatusMessage::Kind::kAlive}, std::vector<std::uint64_t>(peers_.size()));
  }
  for (const auto& peer : peers_) {
    if (!is_other(*peer) || peer->has_left || peer->is_lost) continue;
    if (overslept) peer->last_heard = now;
    if (now - peer->last_heard > fate_->deadline())
      lose(peer->rank, text_of("it has not answered for ", in_seconds(fate_->deadline()), " s"));
  }
}

void Membership::lose(int rank, const std::string& why) {
  auto& peer = *peers_[std::size_t(rank)];
  if (peer.has_left) return;
  peer.is_lost = true;
  fate_->fail(rank, std::make_exception_ptr(RankIsGone(why)));
  changed_.notify_all();
}

bool Membership::is_silent() const {
  const auto was_told = [](const auto& peer) { return peer->status.empty() || peer->is_lost; };
  return std::all_of(peers_.begin(), peers_.end(), was_told);
}

bool Membership::has_left(int peer) const {
  const std::scoped_lock lock(mutex_);
  return peers_[std::size_t(peer)]->has_left;
}

bool Membership::have_all_left() const {
  const std::scoped_lock lock(mutex_);
  return std::all_of(peers_.begin(), peers_.end(),
                     [&](const auto& peer) { return !is_other(*peer) || peer->has_left; });
}

}  // namespace braid
