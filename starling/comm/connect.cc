#include "starling/comm/connect.h"

#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "starling/base/error.h"
#include "starling/comm/card.h"
#include "starling/comm/module.h"
#include "starling/comm/packing.h"
#include "starling/comm/protocol.h"
#include "starling/comm/rendezvous.h"
#include "starling/comm/wire.h"

namespace starling::comm {
namespace {

// UCX reads these when it is loaded. It would print to stdout and catch signals.
void tame_ucx() {
  setenv("UCX_LOG_FILE", "/dev/stderr", /*overwrite=*/0);
  setenv("UCX_ERROR_SIGNALS", "", /*overwrite=*/0);
  setenv("UCX_WARN_UNUSED_ENV_VARS", "n", /*overwrite=*/0);
  // What it would say about a worker that ended, it says through us.
  setenv("UCX_LOG_LEVEL", "fatal", /*overwrite=*/0);
}

std::unique_ptr<Wire> make_wire(const std::string& transport, std::size_t workers) {
  require(transport == "ucx" || transport == "mpi", "unknown transport '{}'; there are ucx and mpi",
          transport);
  if (transport == "ucx") {
    tame_ucx();
  }
  void* symbol = load_symbol(transport, "starling_make_wire",
                             transport == "ucx" ? "UCX (libucx0)" : "Open MPI (libopenmpi3)");
  return std::unique_ptr<Wire>(reinterpret_cast<MakeWire*>(symbol)(workers));
}

std::vector<Card> exchange_cards(Rendezvous& rendezvous, const Card& own) {
  std::vector<Card> cards;
  for (const Bytestring& bytes : rendezvous.exchange(own.packed())) {
    cards.push_back(Card::unpack(bytes));
  }
  for (std::size_t r = 0; r < cards.size(); ++r) {
    if (cards[r].configuration != cards[0].configuration) {
      throw Error(ErrorCode::Mismatch,
                  fmt::format("workers 0 and {} were started differently: {} against {}", r,
                              cards[0].configuration, cards[r].configuration));
    }
  }
  return cards;
}

std::vector<Node> nodes_of(const std::vector<Card>& cards) {
  std::map<std::string, std::uint32_t> known;
  std::vector<Node> nodes;
  for (const Card& card : cards) {
    const auto number = static_cast<std::uint32_t>(known.size());
    nodes.push_back(Node{known.emplace(card.host, number).first->second});
  }
  return nodes;
}

// Maps the pools of the workers on our host. Either all of them map each other's or nobody does.
Crew make_crew(Rendezvous& rendezvous, const std::vector<Card>& cards) {
  Crew crew{.self = rendezvous.rank(), .nodes = nodes_of(cards), .views = {}, .seats = {}};
  const Node own = crew.nodes[crew.self.index()];
  std::map<Node, std::size_t> taken;
  for (const Node node : crew.nodes) {
    crew.seats.push_back(taken[node]++);
  }
  bool all = taken[own] <= kMostSeats;
  for (std::uint32_t r = 0; r < cards.size(); ++r) {
    std::optional<PoolView>& view = crew.views.emplace_back();
    if (r != crew.self.value && crew.nodes[r] == own && all) {
      if (auto opened = PoolView::open(cards[r].pool, crew.seats[crew.self.index()])) {
        view.emplace(std::move(*opened));
      } else {
        all = false;
      }
    }
  }
  const std::byte mapped{all ? std::uint8_t{1} : std::uint8_t{0}};
  const std::vector<Bytestring> answers = rendezvous.exchange({&mapped, 1});
  for (std::uint32_t r = 0; r < cards.size(); ++r) {
    all = all && (crew.nodes[r] != own || answers[r].at(0) != std::byte{0});
  }
  if (!all) {
    for (auto& view : crew.views) {
      view.reset();
    }
  }
  return crew;
}

std::unique_ptr<Lifelines> make_lifelines(const Crew& crew, const std::vector<Card>& cards,
                                          LifelineListener& listener, const std::string& secret,
                                          Duration patience) {
  std::vector<Lifelines::Peer> peers;
  for (std::size_t r = 0; r < cards.size(); ++r) {
    peers.push_back({cards[r].lifeline, crew.nodes[r] == crew.nodes[crew.self.index()]});
  }
  return std::make_unique<Lifelines>(crew.self, peers, listener, secret, patience);
}

// The strings that workers compare; a difference is shown to the user as they stand.
std::string configuration_of(const std::string& transport, const ConnectOptions& options) {
  return fmt::format("protocol {}, transport {}, chunk {}, window {}{}{}", kProtocolVersion,
                     transport, options.engine.chunk, options.engine.window,
                     options.configuration.empty() ? "" : ", ", options.configuration);
}

// Lifelines, wires and a word to everyone, within `patience`.
std::unique_ptr<HostEndpoint> reach_everyone(Crew crew, const std::vector<Card>& cards,
                                             std::unique_ptr<Pool> pool, std::unique_ptr<Wire> wire,
                                             LifelineListener& listener, const std::string& secret,
                                             Duration patience) {
  const WallTime until = std::chrono::steady_clock::now() + patience;
  const Rank self = crew.self;
  auto lifelines = make_lifelines(crew, cards, listener, secret, patience);
  std::vector<Bytestring> addresses;
  for (const Card& card : cards) {
    addresses.push_back(card.wire);
  }
  Wire& opened = *wire;
  auto endpoint = std::make_unique<HostEndpoint>(std::move(crew), std::move(pool), std::move(wire),
                                                 std::move(lifelines));
  opened.open(self, addresses, std::hash<std::string>{}(secret), endpoint->wire_listener());
  endpoint->greet_all(until - std::chrono::steady_clock::now());
  return endpoint;
}

// Nobody leaves the meeting before everybody has reached everyone or failed to: who left at once
// would be taken by the others for the one that was lost. Throws if somebody was lost, or failed.
void leave_together(Rendezvous& rendezvous, const std::optional<Error>& failure) {
  Packer own;
  if (failure) {
    own.number(static_cast<std::uint32_t>(failure->code()));
    own.text(failure->what());
  }
  std::vector<Bytestring> failures;
  try {
    failures = rendezvous.exchange(own.packed());
  } catch (const Error& verdict) {
    if (!failure) {
      throw;
    }
    // The meeting knows who ended; what was seen here may be what came of it, or (PMIx) say more.
    throw Error(verdict.code(), fmt::format("{} (seen here: {})", verdict.what(), failure->what()));
  }
  if (failure) {
    throw *failure;
  }
  for (const Bytestring& other : failures) {
    if (!other.empty()) {
      Unpacker unpacker(other);
      const auto code = static_cast<ErrorCode>(unpacker.number());
      throw Error(code, unpacker.all_text());
    }
  }
}

std::unique_ptr<Workers> connect_to_others(Rendezvous& rendezvous, const std::string& transport,
                                           Duration patience, const ConnectOptions& options) {
  auto wire = make_wire(transport, rendezvous.size());
  auto pool = std::make_unique<Pool>(options.pool_bytes);
  LifelineListener listener;
  const Card own{.configuration = configuration_of(transport, options),
                 .host = own_host(),
                 .host_name = own_host_name(),
                 .pool = pool->address(),
                 .lifeline = listener.address(),
                 .wire = wire->address()};
  const std::vector<Card> cards = exchange_cards(rendezvous, own);
  Crew crew = make_crew(rendezvous, cards);
  std::unique_ptr<HostEndpoint> endpoint;
  std::optional<Error> failure;
  try {
    endpoint = reach_everyone(std::move(crew), cards, std::move(pool), std::move(wire), listener,
                              rendezvous.secret(), patience);
  } catch (const Error& error) {
    failure = error;
  }
  leave_together(rendezvous, failure);
  Workers::Facts facts{.launcher = rendezvous.how(), .transport = transport, .host_names = {}};
  for (const Card& card : cards) {
    facts.host_names.push_back(card.host_name);
  }
  return std::make_unique<Workers>(std::move(endpoint), options.engine, std::move(facts));
}

std::unique_ptr<Workers> alone(const ConnectOptions& options) {
  Crew crew{.self = Rank{0}, .nodes = {Node{0}}, .views = {}, .seats = {0}};
  crew.views.emplace_back();
  auto endpoint = std::make_unique<HostEndpoint>(
      std::move(crew), std::make_unique<Pool>(options.pool_bytes), nullptr, nullptr);
  return std::make_unique<Workers>(
      std::move(endpoint), options.engine,
      Workers::Facts{
          .launcher = "nobody", .transport = "nothing", .host_names = {own_host_name()}});
}

Duration patience_of(const Variables& variables, const ConnectOptions& options) {
  const auto text = variables("STARLING_PATIENCE");
  if (!text) {
    return options.patience;
  }
  char* end = nullptr;
  const double value = std::strtod(text->c_str(), &end);
  require(!text->empty() && *end == '\0' && value > 0 && value < 1e6,
          "STARLING_PATIENCE is '{}', not a number of seconds", *text);
  return std::chrono::duration_cast<Duration>(Seconds(value));
}

}  // namespace

std::unique_ptr<Workers> connect(const ConnectOptions& options) {
  return connect(process_environment(), options);
}

std::unique_ptr<Workers> connect(const Variables& variables, const ConnectOptions& options) {
  const Job job = find_job(variables);
  if (job.launcher == Launcher::None) {
    return alone(options);
  }
  const Duration patience = patience_of(variables, options);
  const std::string transport = !options.transport.empty()
                                    ? options.transport
                                    : variables("STARLING_TRANSPORT").value_or("ucx");
  const auto rendezvous = meet(job, patience);
  if (rendezvous->size() == 1) {
    return alone(options);
  }
  return connect_to_others(*rendezvous, transport, patience, options);
}

}  // namespace starling::comm
