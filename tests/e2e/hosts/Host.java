// SPDX-License-Identifier: MIT
// Host PLUGIN: Java's threads work. Compiled by C1, an access through null is a SIGSEGV that the machine turns into an
// exception, and so is a stack that is full.
import java.util.ArrayList;
import java.util.List;

public class Host {
    static native int work();

    int field;

    static int nulls(int count) {
        int caught = 0;
        for (int i = 0; i < count; i++) {
            Host host = i % 2 == 0 ? new Host() : null;
            try {
                host.field++;
            } catch (NullPointerException e) {
                caught++;
            }
        }
        return caught;
    }

    static int deeper(int depth) {
        return 1 + deeper(depth + 1);
    }

    static String overflow() {
        try {
            return "" + deeper(0);
        } catch (StackOverflowError e) {
            return "full";
        }
    }

    public static void main(String[] args) throws Exception {
        System.load(args[0]);
        List<Thread> threads = new ArrayList<>();
        List<String> results = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            Thread thread = new Thread(() -> {
                String result = work() + " " + nulls(2000) + " " + overflow();
                synchronized (results) {
                    results.add(result);
                }
            });
            thread.start();
            threads.add(thread);
        }
        System.gc();
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("java " + results);
        System.exit(7);
    }
}
