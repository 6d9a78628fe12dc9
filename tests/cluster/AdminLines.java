import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Properties;
import org.apache.pulsar.admin.cli.PulsarAdminTool;

/**
 * Runs command lines of pulsar-admin in one process, which saves a second for each.
 *
 * A line of the standard input has a command's words, each in Base64, separated by spaces; the answer is
 * a line with "true" or "false", and what was printed to the standard output and to the error output in Base64.
 */
public class AdminLines {
    static class Tool extends PulsarAdminTool {
        Tool(Properties properties) throws Exception {
            super(properties);
        }

        boolean runs(String[] words) {
            commander.setOut(new PrintWriter(System.out, true));
            commander.setErr(new PrintWriter(System.err, true));
            return run(words);
        }
    }

    public static void main(String[] urls) throws Exception {
        PrintStream answers = System.out;
        Properties properties = new Properties();
        properties.setProperty("webServiceUrl", urls[0]);
        properties.setProperty("brokerServiceUrl", urls[1]);
        Tool tool = new Tool(properties);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            for (int i = 0; i < words.length; i++) {
                words[i] = new String(Base64.getDecoder().decode(words[i]), StandardCharsets.UTF_8);
            }
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream err = new ByteArrayOutputStream();
            System.setOut(new PrintStream(out, true, "UTF-8"));
            System.setErr(new PrintStream(err, true, "UTF-8"));
            boolean isDone = false;
            try {
                isDone = tool.runs(words);
            } catch (Throwable error) {
                error.printStackTrace(System.err);
            }
            answers.println(isDone + " " + encoded(out) + " " + encoded(err));
            answers.flush();
        }
    }

    private static String encoded(ByteArrayOutputStream text) {
        return "=" + Base64.getEncoder().encodeToString(text.toByteArray());
    }
}
