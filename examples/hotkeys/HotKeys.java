import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;

/**
 * Hot keys of a fleet for Java programs. Needs Gson; the few lines of RESP at the end stand
 * in for a Redis client, whose own connection a program may use as well.
 *
 * <pre>
 * var products = new HotKeys<>("product", List.of("127.0.0.1:6380"), null, 10_000, this::fromDatabase);
 * var page = products.get("/product/7"); // from memory while the key is hot
 * products.changed("/product/7");        // every process loads it again
 * </pre>
 *
 * Uses are counted here and reported every 50 ms to the server that has the key. The servers
 * say which keys are hot; values of these are kept for ttlMillis.
 */
public final class HotKeys<V> implements AutoCloseable {
  private record Count(long uses, long since) {}

  private static final class Value<V> {
    V value;
    long until;
  }

  public final AtomicLong lost = new AtomicLong(); // uses of which no server was told

  private static final int MOST = 100_000; // keys between two reports
  private static final int TIMEOUT = 1000; // milliseconds that a server may take to answer
  private final String rule;
  private final String token;
  private final long ttlMillis;
  private final Function<String, V> load;
  private final Map<String, Map<String, Long>> hot = new ConcurrentHashMap<>(); // node -> key -> end
  private final Map<String, Connection> up = new ConcurrentHashMap<>(); // for reports
  private final AtomicLong hits = new AtomicLong(); // since the last report
  private final AtomicLong misses = new AtomicLong(); // each is a load
  private final Map<String, Value<V>> values = new ConcurrentHashMap<>();
  private final Map<String, Count> counts = new ConcurrentHashMap<>();
  private final Thread reports;
  private final Map<String, Connection> watches = new ConcurrentHashMap<>();
  private volatile boolean closed; // the next report is the last
  private volatile boolean done; // it was sent

  /** The token is null if the servers have none. */
  public HotKeys(String rule, List<String> nodes, String token, long ttlMillis, Function<String, V> load) {
    this.rule = rule;
    this.token = token;
    this.ttlMillis = ttlMillis;
    this.load = load;
    for (String node : nodes) {
      hot.put(node, new ConcurrentHashMap<>());
      start(() -> watch(node));
    }
    reports = start(this::report);
  }

  /** Counts a use of key and returns its value. Threads share one load of a hot key. */
  public V get(String key) {
    long now = millis();
    if (counts.size() < MOST || counts.containsKey(key)) {
      counts.merge(key, new Count(1, now), (was, one) -> new Count(was.uses + 1, was.since));
    } else {
      lost.incrementAndGet();
    }
    if (!isHot(key, now)) {
      return miss(key);
    }
    Value<V> entry = values.computeIfAbsent(key, k -> new Value<>());
    synchronized (entry) {
      if (entry.until > now) {
        hits.incrementAndGet();
      } else {
        entry.value = miss(key);
        entry.until = millis() + ttlMillis;
      }
      return entry.value;
    }
  }

  private V miss(String key) {
    misses.incrementAndGet();
    return load.apply(key);
  }

  /** Tells all processes that the value of key has changed at its source. */
  public void changed(String key) {
    values.remove(key);
    List<String> command = new ArrayList<>(List.of("HOT.CHANGED", rule));
    command.addAll(Arrays.asList(key.split("\t", -1)));
    send(nodeOf(key), command);
  }

  /** Returns how many servers answer. */
  public int servers() {
    return up.size();
  }

  /** Reports what was not reported yet. The object must not be used any more. */
  @Override
  public void close() {
    closed = true;
    try {
      reports.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    done = true;
    watches.values().forEach(Connection::close);
  }

  private boolean isHot(String key, long now) {
    return hot.values().stream().anyMatch(keys -> keys.getOrDefault(key, 0L) > now);
  }

  private void watch(String node) {
    while (!done) {
      try (Connection watch = new Connection(node, token); Connection reports = new Connection(node, token)) {
        watch.write(List.of("SUBSCRIBE", "hot.watch:" + rule));
        watch.read();
        watch.waitForEver();
        watches.put(node, watch);
        up.put(node, reports);
        while (!done) {
          String json = (String) ((List<?>) watch.read()).get(2);
          apply(hot.get(node), JsonParser.parseString(json).getAsJsonObject());
        }
      } catch (IOException e) {
        up.remove(node);
        pause(ThreadLocalRandom.current().nextInt(2000));
      }
    }
  }

  private void apply(Map<String, Long> keys, JsonObject update) {
    if (update.get("reset").getAsBoolean()) {
      values.keySet().removeAll(keys.keySet()); // they may have changed meanwhile
      keys.clear();
    }
    update.getAsJsonArray("cold").forEach(e -> keys.remove(keyOf(e)));
    for (JsonElement e : update.getAsJsonArray("hot")) {
      JsonElement ttl = e.getAsJsonObject().get("ttl_ms"); // a key that is always hot has none
      keys.put(keyOf(e), ttl == null ? Long.MAX_VALUE : millis() + ttl.getAsLong());
    }
    update.getAsJsonArray("changed").forEach(e -> values.remove(keyOf(e)));
  }

  private static String keyOf(JsonElement entry) {
    JsonArray key = entry.getAsJsonObject().getAsJsonArray("key");
    if (key == null) {
      return "\uffff not UTF-8"; // no program here has such a key
    }
    List<String> parts = new ArrayList<>();
    key.forEach(v -> parts.add(v.getAsString()));
    return String.join("\t", parts);
  }

  private void report() {
    long pinged = millis();
    for (boolean last = false; !last; ) {
      pause(50);
      last = closed;
      long now = millis();
      if (now - pinged > TIMEOUT) { // a server that is stopped closes no connection
        up.keySet().forEach(node -> send(node, List.of("PING")));
        pinged = now;
      }
      values.keySet().removeIf(key -> !isHot(key, now));
      Map<String, List<String>> records = new HashMap<>(); // node -> its keys
      for (String key : counts.keySet()) {
        records.computeIfAbsent(nodeOf(key), n -> new ArrayList<>()).add(key);
      }
      records.forEach((node, keys) -> {
        for (int i = 0; i < keys.size(); i += 100) {
          report(node, keys.subList(i, Math.min(i + 100, keys.size())), now);
        }
      });
      long saved = hits.getAndSet(0);
      long loads = misses.getAndSet(0);
      if (!send(nodeOf(""), List.of("HOT.CACHE", rule, "" + saved, "" + loads, "" + loads, "0"))) {
        hits.addAndGet(saved);
        misses.addAndGet(loads);
      }
    }
  }

  private void report(String node, List<String> keys, long now) {
    List<String> args = new ArrayList<>(List.of("HOT.REPORT", rule));
    long uses = 0;
    for (String key : keys) {
      Count count = counts.remove(key);
      args.addAll(Arrays.asList(key.split("\t", -1)));
      args.add(Long.toString(count.uses));
      args.add(Long.toString(Math.max(now - count.since, 0)));
      uses += count.uses;
    }
    if (!send(node, args)) {
      lost.addAndGet(uses);
    }
  }

  private boolean send(String node, List<String> command) {
    Connection connection = up.get(node);
    try {
      if (connection != null) {
        synchronized (connection) {
          connection.write(command);
          connection.read();
        }
        return true;
      }
    } catch (IOException e) {
      up.remove(node, connection); // its keys go to the others, until it answers again
      connection.close();
      watches.get(node).close(); // which then connects again
    }
    return false;
  }

  /** Rendezvous hashing, the same in every client. */
  private String nodeOf(String key) {
    long h = mix(fnv1a(rule + "\0" + key));
    Set<String> nodes = up.isEmpty() ? hot.keySet() : up.keySet();
    return Collections.max(nodes, (a, b) -> Long.compareUnsigned(mix(mix(fnv1a(a)) ^ h), mix(mix(fnv1a(b)) ^ h)));
  }

  private static long fnv1a(String s) {
    long h = 0xcbf29ce484222325L;
    for (byte b : s.getBytes(UTF_8)) {
      h = (h ^ (b & 0xff)) * 0x100000001b3L;
    }
    return h;
  }

  /** The finalizer of MurmurHash3. */
  private static long mix(long h) {
    h = (h ^ h >>> 33) * 0xff51afd7ed558ccdL;
    h = (h ^ h >>> 33) * 0xc4ceb9fe1a85ec53L;
    return h ^ h >>> 33;
  }

  private static long millis() {
    return System.nanoTime() / 1_000_000;
  }

  private static void pause(long millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static Thread start(Runnable task) {
    Thread thread = new Thread(task, "hot-keys");
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  /** A connection to a server: as much of RESP as is needed here. */
  private static final class Connection implements AutoCloseable {
    private final Socket socket = new Socket();
    private final InputStream in;

    Connection(String node, String token) throws IOException {
      int colon = node.lastIndexOf(':');
      socket.connect(new InetSocketAddress(node.substring(0, colon), Integer.parseInt(node.substring(colon + 1))), TIMEOUT);
      socket.setSoTimeout(TIMEOUT);
      in = new BufferedInputStream(socket.getInputStream());
      if (token != null) {
        write(List.of("AUTH", token));
        read();
      }
    }

    void write(List<String> command) throws IOException {
      var out = new ByteArrayOutputStream();
      out.writeBytes(("*" + command.size() + "\r\n").getBytes(UTF_8));
      for (String arg : command) {
        byte[] bytes = arg.getBytes(UTF_8);
        out.writeBytes(("$" + bytes.length + "\r\n").getBytes(UTF_8));
        out.writeBytes(bytes);
        out.writeBytes("\r\n".getBytes(UTF_8));
      }
      out.writeTo(socket.getOutputStream());
    }

    Object read() throws IOException {
      String line = readLine();
      String rest = line.substring(1);
      switch (line.charAt(0)) {
        case '$':
          String text = new String(in.readNBytes(Integer.parseInt(rest)), UTF_8);
          readLine();
          return text;
        case '*':
          var list = new ArrayList<>();
          for (int n = Integer.parseInt(rest); n > 0; n--) {
            list.add(read());
          }
          return list;
        case '-':
          throw new IOException(rest);
        default:
          return rest;
      }
    }

    private String readLine() throws IOException {
      var line = new StringBuilder();
      for (int b = in.read(); b != '\r'; b = in.read()) {
        if (b < 0) {
          throw new EOFException("the server closed the connection");
        }
        line.append((char) b);
      }
      in.read(); // the line feed
      return line.toString();
    }

    /** Lets the server take any time from now on: it writes when a key becomes hot. */
    void waitForEver() throws IOException {
      socket.setSoTimeout(0);
    }

    @Override
    public void close() {
      try {
        socket.close();
      } catch (IOException e) {
        // it is of no more use
      }
    }
  }
}
